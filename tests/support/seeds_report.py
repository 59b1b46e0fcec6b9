# SPDX-License-Identifier: Apache-2.0
"""The output of './dev bench seeds': tables, a JSON object with all runs, and a plot."""

import contextlib
import dataclasses
import os
import pathlib
import platform
import re
import statistics
import subprocess

from support import side_by_side
from support.seeds_peers import BARE

COLOURS = {"berth as root": "tab:blue", "berth rootless": "tab:cyan", "podman": "tab:orange",
           "docker": "tab:red", "Charliecloud": "tab:olive", BARE: "tab:gray"}


@dataclasses.dataclass
class Report:
    """`found` and `shares` have the programs' outputs; all below them are ratios by (device, what, peer),
    with the name of the figure first if there are several."""
    peers: list
    left_out: dict
    devices: list
    gpus: list
    found: dict
    shares: dict
    figures: dict
    times: dict
    to_alone: dict
    to_bare: dict


def in_order(keys):
    """In the plot's order of peers, not in the order of measurement."""
    return sorted(keys, key=lambda key: list(COLOURS).index(key[2]))


# ---- the machine --------------------------------------------------------------------------------

def processor():
    with contextlib.suppress(OSError):
        found = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
        if found:
            return found[1]
    return platform.machine()


def installed(package):
    done = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True,
                          text=True, check=False)
    return done.stdout if done.returncode == 0 else "unknown"


def versions(peers):
    return {"kernel": platform.release(), "g++": side_by_side.version("c++", "--version"),
            "Eigen": installed("libeigen3-dev"),
            **{peer.name: peer.version for peer in peers if peer.version}}


# ---- tables -------------------------------------------------------------------------------------

def rows(table):
    """Prints the table in a form for documents."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for number, row in enumerate(table):
        cells = [row[0].ljust(widths[0]),
                 *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        print(f"| {' | '.join(cells)} |")
        if number == 0:
            print(f"|{'|'.join([' --- ', *[' ---: '] * (len(row) - 1)])}|")
    print()


def medians(results, figures):
    """The median of each figure over all runs and their tenants."""
    return [statistics.median(one[figure] for run in results for one in run)
            for figure in figures]


def job(report, key):
    """The job, in the words of the program."""
    said = report.found[key][0][0][0]
    if said["program"] == "pooling":
        return f"{said['side']} × {said['side']}, {said['passes']} passes"
    return (f"{said['batches']} batches of {said['batch_size']} after {said['burn_in']}")


def times_table(report, device, what):
    keys = in_order(key for key in report.found if key[:2] == (device, what))
    if not keys:
        return
    pooling = "mean_s" not in report.found[keys[0]][0][0][0]
    columns = ["real_s", "user_s", "system_s"] if pooling else ["mean_s", "deviation_s", "total_s"]
    said = report.found[keys[0]][0][0][0]
    print(f"{device}, {what}: {job(report, keys[0])}, {said['threads']} threads, "
          f"{report.times[keys[0]].pairs} pairs\n")
    table = [("", *columns, "÷ bare metal [95 %]", "user time ÷", "command ÷")]
    bare = [theirs for key in keys for _, theirs in report.found[key]]
    table.append((BARE, *(f"{value:.4f}" for value in medians(bare, columns)), "1", "1", "1"))
    for key in keys:
        ours = medians([ours for ours, _ in report.found[key]], columns)
        table.append((key[2], *(f"{value:.4f}" for value in ours), str(report.times[key]),
                      str(report.figures["user_s"][key]), str(report.figures["command_s"][key])))
    rows(table)


def shares_table(report, device):
    if not any(key[0] == device.name for key in report.shares):
        return
    share = "GPU" if device.name == "cuda" else "processor"
    print(f"{device.name}, one container for each {share}, {len(device.shares)} at once: beside one "
          "alone, and beside as many at once on bare metal\n")
    for what in dict.fromkeys(key[1] for key in report.shares if key[0] == device.name):
        keys = in_order(key for key in report.shares if key[:2] == (device.name, what))
        said = report.shares[keys[0]][0][0][0]
        table = [(f"{what}, {said['batches']} batches of {said['batch_size']}", "mean_s alone",
                  "deviation_s alone", "mean ÷", "deviation ÷ [95 %]", "p99 ÷",
                  "deviation ÷ bare [95 %]", "p99 ÷ bare")]
        for key in keys:
            alone = medians([alone for alone, _ in report.shares[key]], ["mean_s", "deviation_s"])
            table.append((key[2], *(f"{value:.5f}" for value in alone),
                          f"{report.to_alone['mean_s'][key].median:.3f}",
                          str(report.to_alone["deviation_s"][key]),
                          f"{report.to_alone['p99_s'][key].median:.3f}",
                          str(report.to_bare["deviation_s"][key]),
                          f"{report.to_bare['p99_s'][key].median:.3f}"))
        rows(table)


def tell(report):
    print(f"{processor()}, {os.cpu_count()} processors; GPUs: {', '.join(report.gpus) or 'none'}")
    for name, text in versions(report.peers).items():
        print(f"  {name}: {text}")
    for name, reason in report.left_out.items():
        print(f"  left out: {name}: {reason}")
    print("seconds are medians; a ratio is the median of those of all pairs\n")
    for device in report.devices:
        for what in dict.fromkeys(key[1] for key in report.found if key[0] == device.name):
            times_table(report, device.name, what)
        shares_table(report, device)


def as_json(report):
    def pairs(of, first, second):
        return [{"device": key[0], "what": key[1], "peer": key[2],
                 "pairs": [{first: one, second: other} for one, other in taken]}
                for key, taken in of.items()]
    return {"processor": processor(), "cpus": os.cpu_count(), "gpus": report.gpus,
            "versions": versions(report.peers), "left_out": report.left_out,
            "sizes": {device.name: dataclasses.asdict(device.sizes) for device in report.devices},
            "measured": pairs(report.found, "container", "bare"),
            "shares": pairs(report.shares, "alone", "at_once")}


# ---- the plot -----------------------------------------------------------------------------------

def draw(axes, ratios, title):
    """A group for each measured thing, with a point and its interval for each peer."""
    groups = list(dict.fromkeys((device, what) for device, what, _ in ratios))
    peers = [name for name in COLOURS if any(key[2] == name for key in ratios)]
    for number, peer in enumerate(peers):
        drawn = [(place + (number - (len(peers) - 1) / 2) * 0.8 / len(peers), ratios[*group, peer])
                 for place, group in enumerate(groups) if (*group, peer) in ratios]
        axes.errorbar([place for place, _ in drawn], [ratio.median for _, ratio in drawn],
                      yerr=[[ratio.median - ratio.low for _, ratio in drawn],
                            [ratio.high - ratio.median for _, ratio in drawn]],
                      fmt="o", markersize=4, capsize=2, label=peer, color=COLOURS[peer])
    axes.axhline(1, color="black", linewidth=0.8)
    several = len({device for device, _ in groups}) > 1
    axes.set_xticks(range(len(groups)),
                    [what.replace(", ", ",\n") + (f"\n({device})" if several else "")
                     for device, what in groups], fontsize=8)
    axes.set_title(title, fontsize=10)


def plot(report, path):
    pyplot = side_by_side.pyplot()
    if pyplot is None:
        return
    figure, axes = pyplot.subplots(3, 1, figsize=(9, 9))
    draw(axes[0], report.times, "time ÷ bare metal: medians of pairs, 95 % intervals")
    draw(axes[1], report.to_alone["deviation_s"],
         "deviation per batch, a container on each share at once ÷ one alone")
    draw(axes[2], {key: ratio for key, ratio in report.to_bare["deviation_s"].items()
                   if key[2] != BARE},
         "deviation per batch, a container on each share at once ÷ as many on bare metal")
    shown = axes[1] if report.shares else axes[0]
    figure.legend(*shown.get_legend_handles_labels(), fontsize=8, ncol=len(COLOURS),
                  loc="lower center")
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(path, dpi=120)
    print(f"plot: {path}")
