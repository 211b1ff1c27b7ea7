#!/usr/bin/env python3
"""Cut the first images and labels from MNIST's files: cut_mnist.py SOURCE TARGET [TRAIN TEST]"""
import gzip
import pathlib
import struct
import sys

source, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
counts = [int(n) for n in sys.argv[3:5]] or [200, 100]
for stem, count in zip(("train", "t10k"), counts):
    for name in (f"{stem}-images-idx3-ubyte", f"{stem}-labels-idx1-ubyte"):
        data = gzip.open(source / f"{name}.gz").read()
        dims = data[3]
        extents = struct.unpack(f">{dims}I", data[4:4 + 4 * dims])
        size = 1
        for extent in extents[1:]:
            size *= extent
        body = 4 + 4 * dims
        cut = data[:4] + struct.pack(f">{dims}I", count, *extents[1:]) + data[body:body + count * size]
        # mtime 0: the same bytes whenever this is run
        (target / f"{name}.gz").write_bytes(gzip.compress(cut, 9, mtime=0))
