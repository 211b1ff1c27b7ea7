#!/usr/bin/env python3
"""Write small data sets by NumPy, whose numbers the tests know by formula: make_files.py FOLDER"""
import io
import pathlib
import sys
import zipfile

import numpy as np

folder = pathlib.Path(sys.argv[1])


def cifar_record(k, labels):
    """Sample k: its labels, then planes whose byte at (c, y, x) is (90 c + 7 y + 3 x + 11 k) mod 256."""
    c, y, x = np.meshgrid(np.arange(3), np.arange(32), np.arange(32), indexing="ij")
    return bytes(labels) + ((90 * c + 7 * y + 3 * x + 11 * k) % 256).astype(np.uint8).tobytes()


def write_cifar():
    ten, hundred = folder / "cifar10", folder / "cifar100"
    ten.mkdir(exist_ok=True)
    hundred.mkdir(exist_ok=True)
    for k in range(5):
        (ten / f"data_batch_{k + 1}.bin").write_bytes(cifar_record(k, [(3 * k + 1) % 10]))
    (ten / "test_batch.bin").write_bytes(cifar_record(20, [9]) + cifar_record(21, [0]))
    (hundred / "train.bin").write_bytes(cifar_record(0, [19, 99]) + cifar_record(1, [4, 0]))
    (hundred / "test.bin").write_bytes(cifar_record(20, [7, 42]))


def volumes(n, c, d, h, w):
    """Element e of all, in order: e / 8 - 3."""
    return (np.arange(n * c * d * h * w) / 8 - 3).reshape(n, c, d, h, w)


def write_arrays():
    for name in ("npy2d", "npy3d", "npz", "maps"):
        (folder / name).mkdir(exist_ok=True)
    flat, deep = folder / "npy2d", folder / "npy3d"
    images = (np.arange(4 * 3 * 5 * 6) * 7 % 256).astype(np.uint8).reshape(4, 3, 5, 6)
    np.save(flat / "train_x.npy", images)
    np.save(flat / "train_y.npy", np.array([2, 0, 1, 2], np.int64))
    np.save(flat / "test_x.npy", images[:2])
    np.save(flat / "test_y.npy", np.array([1, 2], np.int64))
    np.save(deep / "train_x.npy", volumes(3, 2, 3, 4, 5).astype(np.float32))
    np.save(deep / "train_y.npy", np.array([[.5, -1], [0, 1], [-.25, 2]]))
    np.save(folder / "maps" / "train_x.npy", volumes(3, 2, 3, 4, 5).astype(np.float32))
    np.save(folder / "maps" / "train_y.npy", (np.arange(3 * 3 * 4 * 5) * 7 % 4).astype(np.uint8).reshape(3, 3, 4, 5))
    np.savez(folder / "npz" / "train.npz", x=volumes(3, 1, 1, 4, 5)[:, 0, 0], y=np.array([0, 1, 1], np.int32))
    np.savez_compressed(folder / "npz" / "test.npz", x=volumes(2, 1, 1, 4, 5)[:, 0, 0], y=np.array([1, 0], np.uint8))


def write_packed_otherwise():
    """NumPy reads it, though it never writes it."""
    (folder / "npz-lzma").mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "npz-lzma" / "train.npz", "w", zipfile.ZIP_LZMA) as archive:
        for name, array in (("x", volumes(2, 1, 1, 4, 5)[:, 0, 0]), ("y", np.array([1, 0], np.uint8))):
            file = io.BytesIO()
            np.save(file, array)
            archive.writestr(f"{name}.npy", file.getvalue())


write_cifar()
write_arrays()
write_packed_otherwise()
