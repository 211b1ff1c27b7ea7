#!/usr/bin/env python3
"""Make the reference values that tests/runtime/test_reference.c compares with: one training step of PyTorch in double.

Run by hand where PyTorch and torchvision are at hand (made with 1.13, 0.14):
python3 tests/reference/make_reference.py [NET ...]
The tests read the JSON files alone. README.md beside this file says what is in them.
"""
import json
import os
import sys

import numpy
import torch
import torchvision
from torch import nn
from torch.nn import functional

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

LEARNING_RATE = 0.01


# ---- numbers that both sides can make ----

def philox(count, key):
    """First word of Philox4x32-10 with counter (i, 0, 0, 0), i < count, and key (key, 0)."""
    mask = numpy.uint64(0xFFFFFFFF)
    half = numpy.uint64(32)
    counter = [numpy.arange(count, dtype=numpy.uint64)] + [numpy.zeros(count, dtype=numpy.uint64)] * 3
    key0, key1 = key, 0
    for _ in range(10):
        product0 = numpy.uint64(0xD2511F53) * counter[0]
        product1 = numpy.uint64(0xCD9E8D57) * counter[2]
        counter = [(product1 >> half) ^ counter[1] ^ numpy.uint64(key0), product1 & mask,
                   (product0 >> half) ^ counter[3] ^ numpy.uint64(key1), product0 & mask]
        key0 = (key0 + 0x9E3779B9) & 0xFFFFFFFF
        key1 = (key1 + 0xBB67AE85) & 0xFFFFFFFF
    return counter[0]


def fnv1a(name):
    """FNV-1a of 32 bits."""
    value = 0x811C9DC5
    for byte in name.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def spread(name, shape):
    """Numbers in [-1, 1) of 24 bits, exact in single precision: 2 u - 1."""
    count = int(numpy.prod(shape))
    unit = (philox(count, fnv1a(name)) >> numpy.uint64(8)).astype(numpy.float64) * 2.0**-24
    return torch.from_numpy(2.0 * unit - 1.0).reshape(shape)


def initial_value(name, shape):
    """The value of a parameter or statistic before the step, by its key and shape; exact in single precision."""
    value = spread(name, shape)
    if len(shape) > 1:
        value = value * float(numpy.sqrt(6.0 / (numpy.prod(shape) / shape[0])))
    elif name.endswith(".weight"):
        value = 1.0 + 0.125 * value
    elif name.endswith(".running_var"):
        value = 1.0 + 0.25 * value
    else:
        value = 0.125 * value
    return value.float().double()


# ---- the nets, written out with the keys of Convoy's zoo ----

class LeNet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
        self.ip1, self.ip2 = nn.Linear(800, 500), nn.Linear(500, 10)

    def forward(self, x):
        x = functional.max_pool2d(self.conv1(x), 2)
        x = functional.max_pool2d(self.conv2(x), 2)
        return self.ip2(functional.relu(self.ip1(x.flatten(1))))


class Cifar10Quick(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 32, 5, padding=2), nn.Conv2d(32, 32, 5, padding=2)
        self.conv3 = nn.Conv2d(32, 64, 5, padding=2)
        self.ip1, self.ip2 = nn.Linear(1024, 64), nn.Linear(64, 10)

    def forward(self, x):
        x = functional.relu(functional.max_pool2d(self.conv1(x), 3, 2, ceil_mode=True))
        x = functional.avg_pool2d(functional.relu(self.conv2(x)), 3, 2, ceil_mode=True)
        x = functional.avg_pool2d(functional.relu(self.conv3(x)), 3, 2, ceil_mode=True)
        return self.ip2(self.ip1(x.flatten(1)))


class CosmoFlow32(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv3d(4, 16, 3, padding=1), nn.Conv3d(16, 32, 3, padding=1)
        self.conv3 = nn.Conv3d(32, 64, 3, padding=1)
        self.fc1, self.fc2, self.fc3 = nn.Linear(4096, 128), nn.Linear(128, 64), nn.Linear(64, 4)

    def forward(self, x):
        for conv in (self.conv1, self.conv2, self.conv3):
            x = functional.avg_pool3d(functional.relu(conv(x)), 2)
        return self.fc3(functional.relu(self.fc2(functional.relu(self.fc1(x.flatten(1))))))


def conv(inputs, outputs, kernel, stride):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class SqueezeExcitation(nn.Module):
    """Of SE-ResNets: through a 16th of the channels."""

    def __init__(self, channels):
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(channels, channels // 16, 1), nn.Conv2d(channels // 16, channels, 1)

    def forward(self, x):
        gate = functional.relu(self.fc1(x.mean((2, 3), keepdim=True)))
        return x * torch.sigmoid(self.fc2(gate))


class Block(nn.Module):
    """A basic block (kernels 3, 3) or a bottleneck (kernels 1, 3, 1; the 3x3 halves)."""

    def __init__(self, inputs, width, stride, bottleneck, excite=False):
        super().__init__()
        outputs = 4 * width if bottleneck else width
        kernels = (1, 3, 1) if bottleneck else (3, 3)
        halves = 1 if bottleneck else 0
        self.length = len(kernels)
        channels = inputs
        for i, kernel in enumerate(kernels):
            filters = outputs if i == self.length - 1 else width
            setattr(self, f"conv{i + 1}", conv(channels, filters, kernel, stride if i == halves else 1))
            setattr(self, f"bn{i + 1}", nn.BatchNorm2d(filters))
            channels = filters
        self.se = SqueezeExcitation(outputs) if excite else nn.Identity()
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = x
        for i in range(1, self.length + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            y = functional.relu(y) if i < self.length else y
        return functional.relu(self.se(y) + (self.downsample(x) if self.downsample else x))


class ResNet(nn.Module):
    def __init__(self, blocks, bottleneck, excite=False, classes=1000):
        super().__init__()
        self.conv1, self.bn1 = conv(3, 64, 7, 2), nn.BatchNorm2d(64)
        channels = 64
        for stage, count in enumerate(blocks):
            layer = []
            for i in range(count):
                width = 64 << stage
                layer.append(Block(channels, width, 2 if stage and not i else 1, bottleneck, excite))
                channels = 4 * width if bottleneck else width
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layer))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return self.fc(x.mean((2, 3)))


class Branches(nn.Module):
    """tests/data/models/branches.yaml"""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, padding=1)
        self.branch1, self.branch2 = nn.Conv2d(12, 5, 1), nn.Conv2d(12, 3, 3, padding=1)
        self.branch3 = nn.Conv2d(12, 9, 1)
        self.conv2, self.gn = nn.Conv2d(17, 10, 3, 2, 1), nn.GroupNorm(5, 10)
        self.conv3, self.fc = nn.Conv2d(10, 7, 3, padding=1), nn.Linear(17, 10)

    def forward(self, x):
        x = functional.local_response_norm(functional.relu(self.stem(x)), 5, 0.5, 0.75, 2.0)
        x = torch.cat((self.branch1(x), self.branch2(x), self.branch3(functional.max_pool2d(x, 3, 1, 1))), 1)
        x = functional.relu(self.gn(self.conv2(functional.relu(x))))
        x = functional.local_response_norm(torch.cat((x, self.conv3(x)), 1), 4, 2.0, 0.5, 1.0)
        return self.fc(x.mean((2, 3)))


class ConvNorm(nn.Module):
    """Convolution, batch norm, rectifier."""

    def __init__(self, inputs, outputs, kernel, stride=1):
        super().__init__()
        self.conv, self.bn = conv(inputs, outputs, kernel, stride), nn.BatchNorm2d(outputs, eps=0.001)

    def forward(self, x):
        return functional.relu(self.bn(self.conv(x)))


class Inception(nn.Module):
    def __init__(self, inputs, ones, reduce3, threes, reduce5, fives, pooled):
        super().__init__()
        self.branch1 = ConvNorm(inputs, ones, 1)
        self.branch2 = nn.Sequential(ConvNorm(inputs, reduce3, 1), ConvNorm(reduce3, threes, 3))
        self.branch3 = nn.Sequential(ConvNorm(inputs, reduce5, 1), ConvNorm(reduce5, fives, 3))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1), ConvNorm(inputs, pooled, 1))

    def forward(self, x):
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class GoogLeNet(nn.Module):
    """Without dropout; torchvision's 3x3 in the third branch."""

    MODULES = {"3a": (192, 64, 96, 128, 16, 32, 32), "3b": (256, 128, 128, 192, 32, 96, 64),
               "4a": (480, 192, 96, 208, 16, 48, 64), "4b": (512, 160, 112, 224, 24, 64, 64),
               "4c": (512, 128, 128, 256, 24, 64, 64), "4d": (512, 112, 144, 288, 32, 64, 64),
               "4e": (528, 256, 160, 320, 32, 128, 128), "5a": (832, 256, 160, 320, 32, 128, 128),
               "5b": (832, 384, 192, 384, 48, 128, 128)}

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = ConvNorm(3, 64, 7, 2), ConvNorm(64, 64, 1), ConvNorm(64, 192, 3)
        for name, sizes in self.MODULES.items():
            setattr(self, "inception" + name, Inception(*sizes))
        self.fc = nn.Linear(1024, 1000)

    def forward(self, x):
        x = functional.max_pool2d(self.conv1(x), 3, 2, ceil_mode=True)
        x = functional.max_pool2d(self.conv3(self.conv2(x)), 3, 2, ceil_mode=True)
        for name in self.MODULES:
            x = getattr(self, "inception" + name)(x)
            if name in ("3b", "4e"):
                x = functional.max_pool2d(x, 3 if name == "3b" else 2, 2, ceil_mode=True)
        return self.fc(x.mean((2, 3)))


class Excitation(nn.Module):
    """tests/data/models/excitation.yaml."""

    label_smoothing = 0.1

    def __init__(self):
        super().__init__()
        self.stem, self.block, self.head = nn.Module(), nn.Module(), nn.Module()
        self.stem.conv, self.stem.bn = conv(3, 8, 3, 1), nn.BatchNorm2d(8)
        self.block.expand, self.block.project = nn.Conv2d(8, 16, 1), conv(16, 8, 1, 1)
        self.block.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False)
        self.block.bn1, self.block.bn2 = nn.BatchNorm2d(16), nn.BatchNorm2d(8)
        self.block.fc1, self.block.fc2 = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1)
        self.head.conv = nn.Conv2d(8, 12, 3, 2, 1)
        self.head.fc1, self.head.fc2 = nn.Linear(12, 16), nn.Linear(16, 5)

    def forward(self, x):
        shortcut = functional.relu6(self.stem.bn(self.stem.conv(x)))
        x = functional.silu(self.block.expand(shortcut))
        x = functional.hardswish(self.block.bn1(self.block.depthwise(x)))
        gate = functional.silu(self.block.fc1(x.mean((2, 3), keepdim=True)))
        x = x * torch.sigmoid(self.block.fc2(gate))
        x = self.block.bn2(self.block.project(x)) + shortcut
        x = functional.leaky_relu(self.head.conv(x), 0.1)
        return self.head.fc2(torch.tanh(self.head.fc1(x.mean((2, 3)))))


def vision(name, hidden=None, **settings):
    """torchvision's net, without anything random."""
    net = getattr(torchvision.models, name)(num_classes=10, **settings)
    if hidden:  # AlexNet and VGG with a small head
        dense = [i for i, module in enumerate(net.classifier) if isinstance(module, nn.Linear)]
        widths = [net.classifier[dense[0]].in_features, hidden, hidden, 10]
        for k, i in enumerate(dense):
            net.classifier[i] = nn.Linear(widths[k], widths[k + 1])
    for module in net.modules():
        if isinstance(module, (nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
    return net


class UNet3d(nn.Module):
    """Three levels; a level down has filters w, 2 w, a level up 2 w, 2 w."""

    def __init__(self, width, dice):
        super().__init__()
        self.dice = dice
        channels = 1
        for level in range(4):
            setattr(self, f"down{level + 1}", self.level(channels, width << level, 2 * width << level))
            channels = 2 * width << level
        for level in (3, 2, 1):
            filters = width << level
            up = self.level(3 * filters, filters, filters)
            up.up = nn.ConvTranspose3d(2 * filters, 2 * filters, 2, 2, bias=False)
            setattr(self, f"up{level}", up)
        self.head = nn.Conv3d(2 * width, 3, 1)

    @staticmethod
    def level(inputs, first, second):
        level = nn.Module()
        level.conv1, level.bn1 = nn.Conv3d(inputs, first, 3, padding=1, bias=False), nn.BatchNorm3d(first)
        level.conv2, level.bn2 = nn.Conv3d(first, second, 3, padding=1, bias=False), nn.BatchNorm3d(second)
        return level

    @staticmethod
    def pass_level(level, x):
        return functional.relu(level.bn2(level.conv2(functional.relu(level.bn1(level.conv1(x))))))

    def forward(self, x):
        skips = []
        for level in (self.down1, self.down2, self.down3):
            skips.append(self.pass_level(level, x))
            x = functional.max_pool3d(skips[-1], 2)
        x = self.pass_level(self.down4, x)
        for level, skip in zip((self.up3, self.up2, self.up1), reversed(skips)):
            x = self.pass_level(level, torch.cat((skip, level.up(x)), 1))
        return self.head(x)

    def loss(self, output, label):
        if not self.dice:
            return functional.cross_entropy(output, label)
        share = output.softmax(1)
        true = functional.one_hot(label, output.shape[1]).movedim(-1, 1)
        space = (2, 3, 4)
        return (1 - (2 * (share * true).sum(space) + 1) / (share.sum(space) + true.sum(space) + 1)).mean()


# file: model as the command line names it (a path counts from the root of the tree), net, shape of a batch, classes
# (0: a regression), optimizer, samples kept
NETS = {
    "lenet5": ("lenet5", LeNet5, (4, 1, 28, 28), 10, "momentum", 64),
    "lenet5-adamw": ("lenet5", LeNet5, (4, 1, 28, 28), 10, "adamw", 64),
    "cifar10-quick": ("cifar10-quick", Cifar10Quick, (4, 3, 32, 32), 10, "momentum", 64),
    "cosmoflow-32": ("cosmoflow:size=32", CosmoFlow32, (2, 4, 32, 32, 32), 0, "momentum", 64),
    "branches": ("tests/data/models/branches.yaml", Branches, (3, 3, 14, 12), 10, "momentum", 64),
    "googlenet-32": ("googlenet:size=32,dropout=0", GoogLeNet, (4, 3, 32, 32), 1000, "momentum", 6),
    "resnet18-64": ("resnet18:size=64", lambda: ResNet((2, 2, 2, 2), False), (3, 3, 64, 64), 1000, "momentum", 32),
    "excitation": ("tests/data/models/excitation.yaml", Excitation, (4, 3, 12, 10), 5, "momentum", 64),
    "alexnet-63": ("alexnet:size=63,hidden=64,classes=10,dropout=0", lambda: vision("alexnet", 64), (2, 3, 63, 63), 10,
                   "momentum", 32),
    "vgg11-32": ("vgg11:size=32,hidden=32,classes=10,dropout=0", lambda: vision("vgg11", 32), (1, 3, 32, 32), 10,
                 "momentum", 32),
    "densenet121-64": ("densenet121:size=64,classes=10", lambda: vision("densenet121"), (4, 3, 64, 64), 10, "momentum",
                       2),
    "mobilenet-v2-64": ("mobilenet-v2:size=64,classes=10,dropout=0", lambda: vision("mobilenet_v2"), (4, 3, 64, 64), 10,
                        "momentum", 8),
    "efficientnet-b0-64": ("efficientnet-b0:size=64,classes=10,dropout=0,stochastic-depth=0",
                           lambda: vision("efficientnet_b0"), (4, 3, 64, 64), 10, "momentum", 6),
    "inception-v3-75": ("inception-v3:size=75,classes=10,dropout=0",
                        lambda: vision("inception_v3", aux_logits=False, init_weights=False), (5, 3, 75, 75), 10,
                        "momentum", 4),
    "se-resnet50-64": ("se-resnet50:size=64,classes=10", lambda: ResNet((3, 4, 6, 3), True, True, 10), (2, 3, 64, 64),
                       10, "momentum", 8),
    "unet3d-16": ("unet3d:size=16,width=4", lambda: UNet3d(4, False), (2, 1, 16, 16, 16), 3, "momentum", 12),
    "unet3d-dice": ("unet3d:size=16,width=2,loss=dice", lambda: UNet3d(2, True), (2, 1, 16, 16, 16), 3, "momentum", 12),
    "resnet50-64": ("resnet50:size=64", lambda: ResNet((3, 4, 6, 3), True), (2, 3, 64, 64), 1000, "momentum", 12),
}


# ---- one step ----

def make_optimizer(name, net):
    if name == "adamw":
        settings = {"betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}
        return torch.optim.AdamW(net.parameters(), lr=LEARNING_RATE, **settings), settings
    settings = {"momentum": 0.9, "weight_decay": 1e-4}
    return torch.optim.SGD(net.parameters(), lr=LEARNING_RATE, **settings), settings


def digest(tensor, samples):
    """L2 norm, mean, and elements 0, stride, 2 stride, … in logical order."""
    flat = tensor.detach().flatten()
    count = min(samples, flat.numel())
    stride = max(1, flat.numel() // samples)
    return {"shape": list(tensor.shape), "l2": float(flat.norm()), "mean": float(flat.mean()),
            "sample": [float(value) for value in flat[:count * stride:stride]]}


def evaluate(net, x):
    net.eval()
    with torch.no_grad():
        return net(x)


def make_label(output, classes):
    """Labels for an output of a shape: values, a class of each sample, or one of each position."""
    if not classes:
        return spread("label", tuple(output))
    if len(output) == 2:
        return torch.arange(output[0]) % classes
    return ((spread("label", (output[0], *output[2:])) + 1) / 2 * classes).floor().long()


def find_loss(net, output, label):
    if hasattr(net, "loss"):
        return net.loss(output, label)
    if label.is_floating_point():
        return functional.mse_loss(output, label)
    return functional.cross_entropy(output, label, label_smoothing=getattr(net, "label_smoothing", 0.0))


def step(model, make, shape, classes, optimizer_name, samples):
    net = make()
    with torch.no_grad():
        for key, tensor in net.state_dict().items():
            if not key.endswith("num_batches_tracked"):
                tensor.copy_(initial_value(key, tuple(tensor.shape)))
    x = spread("input", shape)
    initial_output = evaluate(net, x)
    label = make_label(initial_output.shape, classes)
    net.train()
    optimizer, settings = make_optimizer(optimizer_name, net)
    output = net(x)
    loss = find_loss(net, output, label)
    loss.backward()
    gradients = {key: digest(parameter.grad, samples) for key, parameter in net.named_parameters()}
    optimizer.step()
    state = {key: digest(tensor, samples) for key, tensor in net.state_dict().items()
             if not key.endswith("num_batches_tracked")}
    return {
        "model": model, "batch": list(shape), "classes": classes, "optimizer": optimizer_name,
        "learning_rate": LEARNING_RATE, **{key: value for key, value in settings.items()},
        "loss": float(loss),
        "initial_output": digest(initial_output, 64), "final_output": digest(evaluate(net, x), 64),
        "gradients": gradients, "state": state,
    }


def write(path, record):
    """JSON, a tensor a line; Python prints the shortest digits that read back to the same double."""
    with open(path, "w", encoding="ascii") as file:
        lines = []
        for key, value in record.items():
            if key in ("gradients", "state"):
                inner = ",\n".join(f"  {json.dumps(name)}: {json.dumps(tensor)}" for name, tensor in value.items())
                lines.append(f" {json.dumps(key)}: {{\n{inner}\n }}")
            else:
                lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    for name in sys.argv[1:] or NETS:
        record = step(*NETS[name])
        write(os.path.join(folder, name + ".json"), record)
        print(f"{name}: loss {record['loss']:.6f}")


if __name__ == "__main__":
    main()
