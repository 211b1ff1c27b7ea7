#!/usr/bin/env python3
"""Make optimizers.json: three training steps of a small net in double, by each rule that updates weights.

Run by hand where PyTorch is at hand (made with 1.13): python3 tests/reference/make_optimizers.py
SGD, Adam, AdamW and both ways of clipping are PyTorch's; LARS and LAMB are written out from their papers here.
"""
import json
import os

import torch
from torch import nn
from torch.nn import functional

from make_reference import initial_value, spread

STEPS, BATCH, CLASSES = 3, 4, 3
ADAM = {"beta1": 0.9, "beta2": 0.99, "epsilon": 1e-6, "weight_decay": 0.05}
CASES = {
    "sgd": {"rule": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.05},
    "sgd-no-decay-norms": {"rule": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.05,
                           "no_decay_norms": 1},
    "adam": {"rule": "adam", "learning_rate": 0.02, **ADAM},
    "adam-no-decay-norms": {"rule": "adam", "learning_rate": 0.02, "no_decay_norms": 1, **ADAM},
    "adamw-no-decay-norms": {"rule": "adamw", "learning_rate": 0.02, "no_decay_norms": 1, **ADAM},
    "sgd-clip-norm": {"rule": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.05, "clip_norm": 0.2},
    "sgd-clip-value": {"rule": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.05,
                       "clip_value": 0.05},
    "adam-clip-norm": {"rule": "adam", "learning_rate": 0.02, "clip_norm": 0.2, **ADAM},
    "adam-clip-value": {"rule": "adam", "learning_rate": 0.02, "clip_value": 0.05, **ADAM},
    "lars": {"rule": "lars", "learning_rate": 2.0, "momentum": 0.9, "weight_decay": 0.05, "trust": 0.02},
    "lars-clip-norm": {"rule": "lars", "learning_rate": 2.0, "momentum": 0.9, "weight_decay": 0.05, "trust": 0.02,
                       "clip_norm": 0.2, "no_decay_norms": 1},
    "lamb": {"rule": "lamb", "learning_rate": 0.02, **ADAM},
    "lamb-clip-norm": {"rule": "lamb", "learning_rate": 0.02, "clip_norm": 0.2, "no_decay_norms": 1, **ADAM},
    "sgd-ema": {"rule": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.0, "ema": 0.75},
}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.fc = nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3), nn.Linear(27, CLASSES)

    def forward(self, x):
        return self.fc(functional.relu(self.norm(self.conv(x))).flatten(1))


def decay_of(w, case):
    return 0.0 if case.get("no_decay_norms") and w.dim() <= 1 else case["weight_decay"]


def lars(case):
    """You, Gitman and Ginsburg, "Large batch training of convolutional networks", 2017, algorithm 1."""
    def step(w, state, time):
        decay, g = decay_of(w, case), w.grad
        ratio = case["trust"] * w.norm() / (g.norm() + decay * w.norm()) if w.dim() > 1 else 1.0
        state["v"] = case["momentum"] * state.get("v", 0.0) + case["learning_rate"] * ratio * (g + decay * w)
        return w - state["v"]
    return step


def lamb(case):
    """You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", 2020, algorithm 2."""
    def step(w, state, time):
        g, beta1, beta2 = w.grad, case["beta1"], case["beta2"]
        state["m"] = beta1 * state.get("m", 0.0) + (1.0 - beta1) * g
        state["v"] = beta2 * state.get("v", 0.0) + (1.0 - beta2) * g * g
        m, v = state["m"] / (1.0 - beta1**time), state["v"] / (1.0 - beta2**time)
        update = m / (v.sqrt() + case["epsilon"]) + decay_of(w, case) * w
        ratio = w.norm() / update.norm() if w.dim() > 1 else 1.0
        return w - case["learning_rate"] * ratio * update
    return step


class ByHand:
    """As torch.optim, around a function of one parameter."""
    def __init__(self, net, rule):
        self.states, self.rule, self.time = [(w, {}) for w in net.parameters()], rule, 0

    def step(self):
        self.time += 1
        with torch.no_grad():
            for w, state in self.states:
                w.copy_(self.rule(w, state, self.time))


def make_optimizer(net, case):
    groups = [{"params": [w], "weight_decay": decay_of(w, case)} for w in net.parameters()]
    if case["rule"] == "sgd":
        return torch.optim.SGD(groups, case["learning_rate"], case["momentum"])
    if case["rule"] in ("adam", "adamw"):
        kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[case["rule"]]
        return kind(groups, case["learning_rate"], (case["beta1"], case["beta2"]), case["epsilon"])
    return ByHand(net, {"lars": lars, "lamb": lamb}[case["rule"]](case))


def snapshot(net):
    return {key: tensor.clone() for key, tensor in net.state_dict().items() if tensor.is_floating_point()}


def train(case):
    net = Net()
    with torch.no_grad():
        for key, tensor in snapshot(net).items():
            net.state_dict()[key].copy_(initial_value(key, tuple(tensor.shape)))
    optimizer, average = make_optimizer(net, case), snapshot(net)
    for i in range(STEPS):
        net.zero_grad()
        output = net(spread(f"input{i}", (BATCH, 2, 5, 5)))
        functional.cross_entropy(output, torch.arange(BATCH) % CLASSES).backward()
        if "clip_norm" in case:
            nn.utils.clip_grad_norm_(net.parameters(), case["clip_norm"])
        if "clip_value" in case:
            nn.utils.clip_grad_value_(net.parameters(), case["clip_value"])
        optimizer.step()
        if "ema" in case:
            average = {key: case["ema"] * average[key] + (1.0 - case["ema"]) * value
                       for key, value in snapshot(net).items()}
    state = snapshot(net)
    if "ema" in case:
        state.update({"ema." + key: value for key, value in average.items()})
    return {key: tensor.detach().flatten().tolist() for key, tensor in state.items()}


def main():
    lines = []
    for name, case in CASES.items():
        tensors = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in train(case).items())
        lines.append(f" {json.dumps(name)}: {{\"options\": {json.dumps(case)}, \"state\": {{\n{tensors}\n }}}}")
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "optimizers.json"), "w", encoding="ascii") as file:
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
