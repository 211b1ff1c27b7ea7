#!/usr/bin/python3
"""Exchange weights with torchvision, both ways. Run by hand where Debian's python3-torchvision is installed:

    python3 tests/reference/check_torchvision.py build/convoy [MODEL ...]

A torchvision state_dict, saved as safetensors, is evaluated by `convoy eval`: it must have every parameter and
statistic of the model, in its shape, and both sides as many parameters. Then `convoy train` makes a checkpoint that
torchvision loads, no key missing and none left. Loss and accuracy of both sides over the same images must agree. Ends
with 1 where they do not.
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

COUNT = 16  # images
CLASSES = 10
torch.set_num_threads(1)

# zoo name: torchvision's, what its constructor takes, size of the images, whether weights go back as well (which takes
# gigabytes for the largest)
MODELS = {
    "alexnet": ("alexnet", {}, 64, False),
    "vgg11": ("vgg11", {}, 32, False),
    "vgg13": ("vgg13", {}, 32, False),
    "vgg16": ("vgg16", {}, 32, False),
    "vgg19": ("vgg19", {}, 32, False),
    "resnet18": ("resnet18", {}, 32, True),
    "resnet34": ("resnet34", {}, 32, True),
    "resnet50": ("resnet50", {}, 32, True),
    "resnet101": ("resnet101", {}, 32, True),
    "resnet152": ("resnet152", {}, 32, True),
    "resnext50-32x4d": ("resnext50_32x4d", {}, 32, True),
    "googlenet": ("googlenet", {"aux_logits": False, "init_weights": False}, 48, True),
    "densenet121": ("densenet121", {}, 48, True),
    "inception-v3": ("inception_v3", {"aux_logits": False, "init_weights": False}, 107, True),
    "mobilenet-v2": ("mobilenet_v2", {}, 48, True),
    "efficientnet-b0": ("efficientnet_b0", {}, 48, True),
    "efficientnet-b4": ("efficientnet_b4", {}, 48, True),
}


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


def save_images(folder, images, labels):
    for split in ("train", "test"):
        numpy.save(os.path.join(folder, f"{split}_x.npy"), images)
        numpy.save(os.path.join(folder, f"{split}_y.npy"), labels)


def make_net(name):
    constructor, settings, _, _ = MODELS[name]
    return getattr(torchvision.models, constructor)(num_classes=CLASSES, **settings)


def judge(net, images, labels):
    net.double().eval()
    x = torch.from_numpy(images.astype(numpy.float64))
    y = torch.from_numpy(labels)
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


def check_count(program, model, net):
    found = convoy(program, "model", model, "--json")["parameters"]
    expected = sum(parameter.numel() for parameter in net.parameters())
    print(f"{model}: {found} parameters, torchvision's {expected}: {'ok' if found == expected else 'DIFFERS'}")
    return found == expected


def check(program, name, folder):
    size, goes_back = MODELS[name][2:]
    random = numpy.random.default_rng(1)
    images = random.standard_normal((COUNT, 3, size, size)).astype(numpy.float32)
    labels = random.integers(0, CLASSES, COUNT, dtype=numpy.int64)
    save_images(folder, images, labels)
    torch.manual_seed(1)
    net = make_net(name)
    net.train()
    with torch.no_grad():
        for _ in range(3):  # running statistics that are not their initial ones
            net(torch.randn(8, 3, size, size))
    weights = os.path.join(folder, "weights.safetensors")
    save_safetensors(weights, net.state_dict())
    model = f"{name}:size={size},classes={CLASSES}"
    good = check_count(program, model, net)
    common = ("--data", folder, "--batch", "8", "--json", "--quiet")
    found = convoy(program, "eval", model, "--checkpoint", weights, *common)
    good = compare(f"{name} from torchvision", found, judge(net, images, labels)) and good
    if not goes_back:
        return good

    run = os.path.join(folder, "run")
    convoy(program, "train", model, "--weights", weights, "--out", run, "--learning-rate", "0.0001",
           *common)
    checkpoints = os.path.join(run, "checkpoints")
    last = os.path.join(checkpoints, sorted(os.listdir(checkpoints))[-1])
    state = load_safetensors(os.path.join(last, "model.safetensors"))
    state.update({key: torch.tensor(0) for key in net.state_dict() if key.endswith("num_batches_tracked")})
    back = make_net(name)
    back.load_state_dict(state)
    found = convoy(program, "eval", model, "--checkpoint", last, *common)
    return compare(f"{name} back to torchvision", found, judge(back, images, labels)) and good


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    good = True
    for name in sys.argv[2:] or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            good = check(os.path.abspath(sys.argv[1]), name, folder) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
