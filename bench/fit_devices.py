#!/usr/bin/python3
"""Fit the efficiencies and launch times of GPUs in machines/*.yaml to published throughput of one device.

Usage: fit_devices.py MEASURED.csv [BUILD [MACHINES]]. The table has columns model, gpu, gpus, batch_per_gpu, precision,
images_per_s and note; BUILD/bench_one_device lists the ops of each model. For each chip and precision one set of
constants is fitted to all rows together, with a log-normal prior on each; under mixed precision, where software tells
more than the chip, one of each release too, with all releases together as its prior. Prints each row with what is
predicted, and with what a set says that saw no row of that model. Where MACHINES, a folder, is given, its files get
the constants. So does a CPU, from what bench/RESULTS.md has of Convoy itself with two threads.
"""
import collections
import csv
import math
import os
import re
import subprocess
import sys
import tempfile
import textwrap

import numpy

# Names in the table, and models of the zoo. What is not here is in no zoo: detectors, other U-Nets, wide-SE variants.
MODELS = {
    "resnet50_v1": "resnet50:version=1",
    "resnet50_v1.5": "resnet50",
    "resnet50": "resnet50",
    "resnet152_v1": "resnet152:version=1",
    "inception_v3": "inception-v3",
    "vgg16": "vgg16",
    "alexnet": "alexnet",
    "resnext101-32x4d": "resnext101-32x4d",
    "se-resnext101-32x4d": "se-resnext101-32x4d",
    "efficientnet-b0": "efficientnet-b0",
    "efficientnet-b4": "efficientnet-b4",
    "efficientnet_v1-b0": "efficientnet-b0",
    "efficientnet_v1-b4": "efficientnet-b4",
}

# MXNet's alexnet (example/image-classification/symbols/alexnet.py of 1.2) is that of 2012 without groups.
ALEXNET_2012 = """name: alexnet-2012
input: [3, 224, 224]
layers:
  - {name: conv1, kind: conv, filters: 96, kernel: 11, stride: 4}
  - {name: relu1, kind: relu}
  - {name: norm1, kind: local-response-norm, size: 5}
  - {name: pool1, kind: max-pool, kernel: 3, stride: 2}
  - {name: conv2, kind: conv, filters: 256, kernel: 5, padding: 2}
  - {name: relu2, kind: relu}
  - {name: norm2, kind: local-response-norm, size: 5}
  - {name: pool2, kind: max-pool, kernel: 3, stride: 2}
  - {name: conv3, kind: conv, filters: 384, kernel: 3, padding: 1}
  - {name: relu3, kind: relu}
  - {name: conv4, kind: conv, filters: 384, kernel: 3, padding: 1}
  - {name: relu4, kind: relu}
  - {name: conv5, kind: conv, filters: 256, kernel: 3, padding: 1}
  - {name: relu5, kind: relu}
  - {name: pool5, kind: max-pool, kernel: 3, stride: 2}
  - {name: flatten, kind: flatten}
  - {name: fc6, kind: dense, outputs: 4096}
  - {name: relu6, kind: relu}
  - {name: drop6, kind: dropout, probability: 0.5}
  - {name: fc7, kind: dense, outputs: 4096}
  - {name: relu7, kind: relu}
  - {name: drop7, kind: dropout, probability: 0.5}
  - {name: fc8, kind: dense, outputs: 1000}
  - {name: loss, kind: softmax-cross-entropy}
"""

# Chip, peaks of products by precision, of vectors in f32, memory bandwidth: by data sheet, as in the machine files.
V100, V100_SXM3 = {"FP32": 15.7e12, "AMP-fp16": 125e12}, {"FP32": 16.4e12, "AMP-fp16": 131e12}
A100 = {"TF32": 156e12, "AMP-fp16": 312e12}
DEVICES = {
    "K80 (one die)": ("K80", {"FP32": 4.37e12}, 4.37e12, 240e9),
    "M60": ("M60", {"FP32": 4.8e12}, 4.8e12, 160e9),
    "P100-SXM2-16GB": ("P100", {"FP32": 10.6e12}, 10.6e12, 732e9),
    "V100-SXM2-16GB": ("V100", V100, 15.7e12, 900e9),
    "V100 16GB": ("V100", V100, 15.7e12, 900e9),
    "V100-SXM2-32GB": ("V100", V100, 15.7e12, 900e9),
    "V100-SXM3-32GB": ("V100", V100_SXM3, 16.4e12, 980e9),
    "A100-SXM4-40GB": ("A100", A100, 19.5e12, 1555e9),
    "A100-SXM4-80GB": ("A100", A100, 19.5e12, 2039e9),
    "A100 80GB SXM4": ("A100", A100, 19.5e12, 2039e9),
    "A100 40GB PCIe": ("A100", A100, 19.5e12, 1555e9),
    "A100 80GB PCIe": ("A100", A100, 19.5e12, 1935e9),
    "2-core Xeon": ("CPU", {"FP32": 268.8e9}, 268.8e9, 27e9),
}
MACHINES = {"K80": ["k80"], "M60": ["m60"], "P100": ["dgx1-p100"], "V100": ["dgx1-v100", "dgx2"],
            "A100": ["dgx-a100", "dgx-a100-80gb"], "ABCI": [], "CPU": ["cpu-2core"]}
PRECISIONS = {"FP32": "fp32", "TF32": "tf32", "AMP-fp16": "fp16"}

# ABCI: seconds a sample of forward, backward and Adam on one V100 under Chainer 7, as the oracle paper's authors
# profiled them (its code and Fig. 2). Its nets pool as the model-options of machines/abci.yaml say.
RESNET, VGG = "size=226,version=1,ceil-mode=yes,pool-padding=0", "size=226,ceil-mode=yes,adaptive-pool=no"
PROFILES = [("alexnet-2012", 512, 0.000610938), ("vgg16:" + VGG, 32, 0.008245589),
            ("resnet50:" + RESNET, 64, 0.003119502), ("resnet152:" + RESNET, 64, 0.4744 / 64)]

ORIGINS = {"Convoy": "bench/RESULTS.md", "chainer-7": "the authors' profiles (code; Fig. 2 for ResNet-152)"}

# What is fitted: a key and a column of the machine file, the prior, the deviation of its logarithm, the most it can be.
CONSTANTS = [
    ("winograd-convolution", "peak", 0.9, 0.4, 4.0),
    ("convolution", "peak", 0.55, 0.4, 1.0),
    ("grouped-convolution", "peak", 0.2, 0.6, 1.0),
    ("depthwise-convolution", "bandwidth", 0.4, 0.5, 1.0),
    ("any", "peak", 0.6, 0.3, 1.0),
    ("any", "bandwidth", 0.75, 0.2, 1.0),
    ("launch", "", 10e-6, 1.0, 1e-3),
]
PRIOR = numpy.array([c[2] for c in CONSTANTS])
DEVIATION = numpy.array([c[3] for c in CONSTANTS])
MOST = numpy.log([c[4] for c in CONSTANTS])
KERNELS = ["winograd-convolution", "convolution", "grouped-convolution"]
ROW_DEVIATION, PROFILE_DEVIATION = 0.1, 0.05  # published rows of many hands; one hand's averages of many iterations
RELEASE_DEVIATION = numpy.array([0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 1e-3])  # from that of all releases; one launch a chip
BEGIN, END = "  # Fitted by bench/fit_devices.py.\n", "  # The end of what was fitted.\n"


def read_rows(path, models=MODELS):
    """Rows of one device whose model is among these; a batch that is not told is that of the model elsewhere."""
    rows, batches = [], collections.defaultdict(list)
    for row in csv.DictReader(open(path)):
        if row["gpus"] == "1" and row["model"] in models and row["gpu"] in DEVICES:
            row["zoo"] = models[row["model"]]
            if row["model"] == "alexnet" and row["note"].startswith("mxnet"):
                row["zoo"] = "alexnet-2012"
            rows.append(row)
            if row["batch_per_gpu"]:
                batches[row["zoo"], row["gpu"], row["precision"]].append(int(row["batch_per_gpu"]))
                batches[row["zoo"], row["precision"]].append(int(row["batch_per_gpu"]))
    for row in rows:
        known = batches.get((row["zoo"], row["gpu"], row["precision"])) or batches[row["zoo"], row["precision"]]
        row["batch"] = int(row["batch_per_gpu"] or sorted(known)[len(known) // 2])
        row["seconds"] = row["batch"] / float(row["images_per_s"])
        row["optimizer"] = "sgd"
        row["fuse"] = "none"
    return rows


def read_results(path):
    """Convoy with two threads, of the section with AVX-512: its plans fuse relus."""
    section = open(path).read().split("\n## ")[1]
    found = re.findall(r"^\| (\S+) \| (\d+) \| 2 \| ([\d.,]+) \|", section, re.MULTILINE)
    return [{"zoo": model, "batch": int(batch), "gpu": "2-core Xeon", "precision": "FP32", "optimizer": "sgd",
             "seconds": int(batch) / float(rate.replace(",", "")), "note": "Convoy", "fuse": "relu"}
            for model, batch, rate in found]


def read_profiles():
    """What the paper's authors profiled on ABCI, as rows."""
    return [{"zoo": zoo, "batch": batch, "gpu": "V100-SXM2-16GB", "precision": "FP32", "seconds": batch * sample_s,
             "optimizer": "adam", "note": "chainer-7", "fuse": "none", "deviation": PROFILE_DEVIATION}
            for zoo, batch, sample_s in PROFILES]


def name_release(note):
    """The release of the software, from what a row says of it."""
    found = re.match(r"(pytorch|tensorflow|mxnet)-(\d\d\.\d\d)", note)
    if not found:
        return {"TF2": "tensorflow2", "Pad": "paddlepaddle", "NGC": "ngc-pytorch"}.get(note[:3], "unknown")
    compiled = "XLA" in note and "without XLA" not in note and "no XLA" not in note
    return found.group(0) + ("-xla" if compiled else "")


def list_ops(build, rows):
    """The ops of each (model, batch, optimizer, fused): kernels, flop, bytes in f32 and under mixed precision."""
    ops = {}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as net:
        net.write(ALEXNET_2012)
        net.flush()
        for fuse in ("none", "relu"):
            wanted = sorted({row_key(row) for row in rows if row["fuse"] == fuse})
            asked = "".join("%s %d %s\n" % (net.name if zoo == "alexnet-2012" else zoo, batch, rule)
                            for zoo, batch, rule, _ in wanted)
            told = subprocess.run([build + "/bench_one_device", "ops", fuse], input=asked, stdout=subprocess.PIPE,
                                  universal_newlines=True, check=True).stdout
            for key, part in zip(wanted, told.split("model ")[1:]):
                lines = [line.split() for line in part.splitlines()[1:]]
                costs = numpy.array([[float(x) for x in line[2:]] for line in lines])
                ops[key] = ([line[0] for line in lines], costs)
    return ops


def row_key(row):
    """What the ops of a row follow from."""
    return row["zoo"], row["batch"], row["optimizer"], row["fuse"]


class Case:
    """A row with its ops, ready to be priced."""

    def __init__(self, row, ops):
        kernels, costs = ops[row_key(row)]
        _, peaks, vectors, bandwidth = DEVICES[row["gpu"]]
        products = KERNELS + ["depthwise-convolution", "dense"]
        peak = numpy.array([peaks[row["precision"]] if k in products else vectors for k in kernels])
        self.row, self.measured, self.kernels = row, row["seconds"], set(kernels)
        self.deviation = row.get("deviation", ROW_DEVIATION)
        self.flop_s = costs[:, 0] / peak
        self.bytes_s = costs[:, 2 if row["precision"] == "AMP-fp16" else 1] / bandwidth
        self.peak = numpy.array([KERNELS.index(k) if k in KERNELS else 3 if k == "depthwise-convolution" else 4
                                 for k in kernels])

    def predict(self, values):
        """Seconds of an iteration: the roofline of src/oracle/compute.c over all ops."""
        peaks = numpy.array([values[0], values[1], values[2], 1.0, values[4]])
        bandwidths = numpy.array([values[5], values[5], values[5], values[3], values[5]])
        return numpy.maximum(self.flop_s / peaks[self.peak], self.bytes_s / bandwidths[self.peak]).sum() + \
            values[6] * len(self.flop_s)

    def error(self, values):
        """Relative error of images a second."""
        return abs(self.measured / self.predict(values) - 1.0)


def fit(cases, prior, deviation):
    """Constants of least squares in logarithms, by Levenberg and Marquardt's method."""
    start = numpy.log(prior)

    def residuals(x):
        rows = [math.log(c.predict(numpy.exp(x)) / c.measured) / c.deviation for c in cases]
        return numpy.append(numpy.array(rows), (x - start) / deviation)

    x, damping = start.copy(), 1e-2
    now = residuals(x)
    for _ in range(60):
        slope = numpy.array([(residuals(x + 1e-5 * e) - now) / 1e-5 for e in numpy.eye(len(x))]).T
        normal = slope.T @ slope
        step = numpy.linalg.solve(normal + damping * numpy.diag(numpy.diag(normal)), -slope.T @ now)
        trial = numpy.minimum(x + step, MOST)
        then = residuals(trial)
        better = then @ then < now @ now
        done = better and now @ now - then @ then < 1e-6
        x, now = (trial, then) if better else (x, now)
        damping = damping / 3 if better else damping * 4
        if done:
            break
    return numpy.exp(x)


def fold(text, start, indent):
    """A text in lines that fit."""
    return textwrap.fill(text, 119, initial_indent=start, subsequent_indent=" " * indent, break_on_hyphens=False)


class Set:
    """Cases that share constants."""

    def __init__(self, name, release, cases, prior, deviation):
        self.name, self.release, self.cases = name, release, cases
        self.models = sorted({c.row["zoo"] for c in cases})
        sound = [c for c in cases if "SUSPECT" not in c.row["note"]]  # the others count as errors, but fit nothing
        self.values = fit(sound, prior, deviation)
        unseen = {m: fit([c for c in sound if c.row["zoo"] != m], prior, deviation) for m in self.models}
        self.errors = [c.error(self.values) for c in cases]
        self.lefts = [c.error(unseen[c.row["zoo"]]) for c in cases]

    def show(self):
        """Print the constants and the rows."""
        print("\n%s %s: %d rows, %d models" % (self.name, self.release or "", len(self.cases), len(self.models)))
        print("  " + ", ".join("%s %.3g" % (" ".join(c[:2]).strip(), v) for c, v in zip(CONSTANTS, self.values)))
        print("  model                         GPU              batch  measured predicted  error unseen")
        for c, error, left in zip(self.cases, self.errors, self.lefts):
            row = c.row
            print("  %-29s %-16s %5d %9.1f %9.1f %6.1f %6.1f  %s" % (
                row["zoo"], row["gpu"], row["batch"], row["batch"] / c.measured, row["batch"] / c.predict(self.values),
                100 * error, 100 * left, re.split("[;,(]", row["note"])[0][:30]))
        print("  mean error %.1f %%, one model left out %.1f %%" % (100 * numpy.mean(self.errors),
                                                                     100 * numpy.mean(self.lefts)))

    def summarise(self, precision):
        """A row of the table in docs/accuracy.md."""
        cells = [" ".join([self.name, self.release or precision]), len(self.cases), len(self.models),
                 "%.1f" % (100 * numpy.mean(self.errors)), "%.1f" % (100 * numpy.mean(self.lefts))]
        cells += ["%.3g" % v for v in self.values[[0, 1, 2, 4, 3, 5]]] + ["%.3g" % (1e6 * self.values[6])]
        return "| " + " | ".join(str(cell) for cell in cells) + " |"

    def write(self, precision):
        """Lines of a machine file: a rule for each kernel that the cases have, and one for the rest."""
        release = "release: %s, " % self.release if self.release else ""
        origin = ORIGINS.get(self.cases[0].row["note"], "published throughput of one device")
        counts = collections.Counter(c.row["zoo"] for c in self.cases)
        source = "fitted to %s, %d rows: %s" % (origin, len(self.cases), ", ".join(
            m + (" x%d" % n if n > 1 else "") for m, n in sorted(counts.items())))
        lines = []
        for i, kernel in enumerate(KERNELS + ["depthwise-convolution", "any"]):
            if kernel == "any" or any(kernel in c.kernels for c in self.cases):
                rule = release + ("" if kernel == "any" else "kernel: %s, " % kernel) + "precision: %s, " % precision
                rule += "" if i == 3 else "peak: %.3g, " % self.values[i]
                rule += "bandwidth: %.3g, error: %.2f," % (self.values[3 if i == 3 else 5], numpy.median(self.lefts))
                lines.append(fold(rule, "    - {", 7) + "\n" + fold('source: "%s"}' % source, " " * 7, 9) + "\n")
        return lines


def write_machine(path, sets):
    """Put sets of (precision, set) into a machine file: in place of what was fitted before, or behind the device."""
    launch = sets[0][1]
    text = BEGIN + "  launch: {value: %.3g us, source: \"fitted with efficiency below, precision %s\"}\n" % (
        1e6 * launch.values[6], sets[0][0]) + "  efficiency:\n"
    text += "".join(line for precision, some in sets if some.release for line in some.write(precision))
    text += "".join(line for precision, some in sets if not some.release for line in some.write(precision)) + END
    old = open(path).read()
    if BEGIN in old:
        new = old[:old.index(BEGIN)] + text + old[old.index(END) + len(END):]
    else:
        new = re.sub(r"\n(links|execution):\n", lambda m: "\n" + text + m.group(0)[1:], old, count=1)
    open(path, "w").write(new)


def fit_chip(chip, cases):
    """Sets of a chip: of its own precision, of mixed precision over all software, then of each release."""
    plain = [c for c in cases if c.row["precision"] != "AMP-fp16"]
    sets = [(PRECISIONS[plain[0].row["precision"]], Set(chip, None, plain, PRIOR, DEVIATION))]
    mixed = [c for c in cases if c.row["precision"] == "AMP-fp16"]
    if mixed:
        tied = DEVIATION.copy()
        tied[6] = RELEASE_DEVIATION[6]
        prior = numpy.append(PRIOR[:6], sets[0][1].values[6])
        prior[:3] = [0.35, 0.35, 0.1]  # units of matrices are harder to fill
        sets.append(("fp16", Set(chip, None, mixed, prior, tied)))
        for release in sorted({name_release(c.row["note"]) for c in mixed}):
            some = [c for c in mixed if name_release(c.row["note"]) == release]
            sets.append(("fp16", Set(chip, release, some, sets[1][1].values, RELEASE_DEVIATION)))
    return sets


def summarise(name, sets):
    """One line over sets."""
    errors = [e for s in sets for e in s.errors]
    lefts = [e for s in sets for e in s.lefts]
    print("%s: %d rows, mean error %.1f %%, one model left out %.1f %%" % (
        name, len(errors), 100 * numpy.mean(errors), 100 * numpy.mean(lefts)))


def main():
    """Fit all chips; then ABCI about the V100, whose chip it has; then the CPU."""
    rows, profiles = read_rows(sys.argv[1]), read_profiles()
    results = read_results(os.path.join(os.path.dirname(sys.argv[0]), "RESULTS.md"))
    ops = list_ops(sys.argv[2] if len(sys.argv) > 2 else "build", rows + profiles + results)
    cases = collections.OrderedDict()
    for row in rows:
        cases.setdefault(DEVICES[row["gpu"]][0], []).append(Case(row, ops))
    chips = {chip: fit_chip(chip, some) for chip, some in cases.items()}
    about = chips["V100"][0][1].values
    chips["ABCI"] = [("fp32", Set("ABCI", None, [Case(row, ops) for row in profiles], about, DEVIATION))]
    chips["CPU"] = [("fp32", Set("CPU", None, [Case(row, ops) for row in results], PRIOR, DEVIATION))]
    for chip, sets in chips.items():
        for _, some in sets:
            some.show()
        for machine in MACHINES[chip] if len(sys.argv) > 3 else []:
            write_machine("%s/%s.yaml" % (sys.argv[3], machine), sets)
    print("\n" + "\n".join(some.summarise(precision) for sets in chips.values() for precision, some in sets) + "\n")
    everything = [pair for chip, sets in chips.items() if chip not in ("ABCI", "CPU") for pair in sets]
    summarise("fp32 and tf32", [s for precision, s in everything if precision != "fp16"])
    summarise("mixed precision, one set a chip", [s for p, s in everything if p == "fp16" and not s.release])
    summarise("mixed precision, by release", [s for p, s in everything if p == "fp16" and s.release])


if __name__ == "__main__":
    main()
