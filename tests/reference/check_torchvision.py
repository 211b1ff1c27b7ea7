#!/usr/bin/python3
"""Exchange weights with torchvision, both ways. Run by hand where Debian's python3-torchvision is installed:

    python3 tests/reference/check_torchvision.py build/convoy

A torchvision state_dict, saved as safetensors, is evaluated by `convoy eval`; then `convoy train` makes a checkpoint
that torchvision loads. Loss and accuracy of both sides over the same IDX data set must agree. Ends with 1 where
they do not.
"""
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

import numpy
import torch
import torchvision

COUNT = 40


def save_safetensors(path, tensors):
    header, offset, blobs = {}, 0, []
    for name, tensor in tensors.items():
        data = tensor.detach().contiguous().numpy()
        kind = {"float32": "F32", "int64": "I64"}[str(data.dtype)]
        header[name] = {"dtype": kind, "shape": list(data.shape), "data_offsets": [offset, offset + data.nbytes]}
        offset += data.nbytes
        blobs.append(data.tobytes())
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def load_safetensors(path):
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            array = numpy.frombuffer(data[begin:end], dtype="<f4").reshape(entry["shape"])
            tensors[name] = torch.from_numpy(array.copy())
    return tensors


def save_idx(folder, images, labels):
    for split in ("train", "t10k"):
        with open(os.path.join(folder, f"{split}-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 0x803, len(images), 28, 28) + images.tobytes())
        with open(os.path.join(folder, f"{split}-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">II", 0x801, len(labels)) + labels.tobytes())


def one_channel(net):
    """torchvision's nets take 3 channels; the data set has one."""
    old = net.conv1
    net.conv1 = torch.nn.Conv2d(1, old.out_channels, old.kernel_size, old.stride, old.padding, bias=False)
    return net


def judge(net, images, labels):
    net.double().eval()
    x = torch.from_numpy((images.astype(numpy.float64) / 255 - 0.1307) / 0.3081).unsqueeze(1)
    y = torch.from_numpy(labels.astype(numpy.int64))
    with torch.no_grad():
        out = net(x)
    return torch.nn.functional.cross_entropy(out, y).item(), (out.argmax(1) == y).double().mean().item()


def convoy(*arguments):
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def compare(what, found, expected):
    loss, accuracy = expected
    good = math.isclose(found["loss"], loss, rel_tol=1e-4) and abs(found["accuracy"] - accuracy) < 1e-9
    print(f"{what}: loss {found['loss']:.6f} and accuracy {found['accuracy']:.4f}, PyTorch {loss:.6f} and "
          f"{accuracy:.4f}: {'ok' if good else 'DIFFERS'}")
    return good


def check(program, name, folder):
    random = numpy.random.default_rng(1)
    images = random.integers(0, 256, (COUNT, 28, 28), dtype=numpy.uint8)
    labels = random.integers(0, 10, COUNT, dtype=numpy.uint8)
    save_idx(folder, images, labels)
    torch.manual_seed(1)
    net = one_channel(getattr(torchvision.models, name)(num_classes=10))
    net.train()
    for _ in range(3):  # running statistics that are not their initial ones
        net(torch.randn(8, 1, 28, 28))
    weights = os.path.join(folder, "weights.safetensors")
    save_safetensors(weights, net.state_dict())
    model = f"{name}:size=28,channels=1,classes=10"
    found = convoy(program, "eval", model, "--checkpoint", weights, "--data", folder, "--batch", "16", "--json",
                   "--quiet")
    good = compare(f"{name} from torchvision", found, judge(net, images, labels))

    run = os.path.join(folder, "run")
    convoy(program, "train", model, "--data", folder, "--batch", "16", "--weights", weights, "--out", run, "--json",
           "--quiet")
    checkpoints = os.path.join(run, "checkpoints")
    last = os.path.join(checkpoints, sorted(os.listdir(checkpoints))[-1])
    state = load_safetensors(os.path.join(last, "model.safetensors"))
    state.update({key: torch.tensor(0) for key in net.state_dict() if key.endswith("num_batches_tracked")})
    back = one_channel(getattr(torchvision.models, name)(num_classes=10))
    back.load_state_dict(state)
    found = convoy(program, "eval", model, "--checkpoint", last, "--data", folder, "--batch", "16", "--json", "--quiet")
    return compare(f"{name} back to torchvision", found, judge(back, images, labels)) and good


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    good = True
    for name in ("resnet18", "resnet50"):
        with tempfile.TemporaryDirectory() as folder:
            good = check(os.path.abspath(sys.argv[1]), name, folder) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
