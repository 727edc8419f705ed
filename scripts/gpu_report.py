"""The table of `scripts/gpu_check`: figures, the batch sizes, verdicts against the goals, and what failed."""

import re

# Self-play over the bare network, for networks of so many channels or more.
RATIO_GOAL, RATIO_FROM_CHANNELS = 0.90, 128
# Evaluations a second of self-play on one H100 or H200.
RATE_GOALS = {"20x256": 140_000, "10x128": 700_000}
INPUT_CHANNELS = 39


def flop(size):
    """Of the 3x3 convolutions of one evaluation: two in each block, and the input's."""
    blocks, channels = map(int, size.split("x"))
    return 2 * 9 * 64 * (2 * blocks * channels * channels + INPUT_CHANNELS * channels)


def table(report):
    steps = {step["name"]: step for step in report.get("steps", [])}
    parts = [head(report, steps), benches(report, steps), batch_sizes(steps), others(steps), verdicts(steps), failures(report)]
    return "\n\n".join(part for part in parts if part)


def head(report, steps):
    machine = report.get("machine")
    if not machine:
        return ""
    lines = [f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB; {machine['system']}; torch {report['torch']}"]
    for device, name in figures(steps, "probe").get("devices", {}).items():
        used = " (measured)" if device == report["device"] or f"{report['device']}:0" == device else ""
        lines.append(f"{device}  {name}{used}")
    for gpu in machine["gpus"]:
        lines.append(
            f"GPU {gpu['index']}: {gpu['name']}, driver {gpu['driver_version']}, {gpu['memory.total']}, at most {gpu['clocks.max.sm']} and "
            f"{gpu['power.limit']}, PCIe {gpu['pcie.link.gen.max']} x{gpu['pcie.link.width.max']}, MIG {gpu['mig.mode.current']}")
    if not machine["gpus"] and report["device"] != "cpu":
        lines.append(machine["nvidia_smi"])
    if "libnullgpu" in (machine["variables"]["LD_PRELOAD"] or ""):
        lines.append("This is the null GPU: nothing is computed, and no figure says anything of a GPU.")
    lines.append(f"CUDA_VISIBLE_DEVICES {machine['variables']['CUDA_VISIBLE_DEVICES'] or 'is not set'}")
    return "\n".join(lines)


def figures(steps, name):
    return steps.get(name, {}).get("figures", {})


def bench_steps(steps):
    return [step for step in steps.values() if "evaluator" in step.get("figures", {})]


def benches(report, steps):
    matmul = figures(steps, "matmul")
    rows = [["network", "device", "games", "precision", "raw/s", "self-play/s", "ratio", "fill", "busy", "of matmul: raw", "self-play",
             "value error", "policy KL", "RSS MiB", ""]]
    for step in bench_steps(steps):
        one, asked = step["figures"], step["arguments"]
        rate = matmul.get("float16" if one.get("precision") == "fp16" else "bfloat16") if one.get("precision") in ("fp16", "bf16") else None
        devices = one["device"].count(",") + 1
        share = lambda speed: f"{speed * flop(asked['size']) / (rate * devices) / 1e12:.1%}" if rate and speed else "-"
        busy = [device["busy"] for device in (one.get("time_shares") or {}).get("devices", [])]
        chosen = "chosen" if asked.get("precision", "auto") == "auto" else "forced"
        rows.append([
            asked["size"], one["device"], str(asked["games"]), f"{one.get('precision') or '-'} {chosen}", number(one.get("raw_evals_per_s")),
            number(one.get("selfplay_evals_per_s")), number(one.get("ratio")), number(one.get("batch_fill")),
            number(sum(busy) / len(busy) if busy else None), share(one.get("raw_evals_per_s")), share(one.get("selfplay_evals_per_s")),
            number(one.get("value_error")), number(one.get("policy_divergence")), number(one.get("peak_rss_mib")),
            "not finished" if one.get("stopped") else ""])
    if len(rows) == 1:
        return ""
    lines = ["Evaluations a second: the bare network (raw) and self-play; games are in flight for each thread.", *columns(rows)]
    if "bfloat16" in matmul:
        lines.append(f"A product of 8192: {matmul['bfloat16']:.0f} TFLOP/s in bf16, {matmul['float16']:.0f} in fp16. Counted are the convolutions of 3x3.")
    elif report["device"] != "cpu":
        lines.append(steps.get("matmul", {}).get("why") or "The device's matmul rate was not measured.")
    return "\n".join(lines)


def batch_sizes(steps):
    """Evaluations a second by batch, for each network and precision once."""
    tables = {}
    for step in bench_steps(steps):
        one = step["figures"]
        if one.get("bare") and "," not in one["device"]:
            tables.setdefault(f"{step['arguments']['size']} {one['precision']}", one["bare"])
    if not tables:
        return ""
    batches = sorted({row["batch"] for table in tables.values() for row in table})
    rows = [["network", *map(str, batches)]]
    for name, table in tables.items():
        rates = {row["batch"]: number(row["evals_per_s"]) + ("*" if row["is_chosen"] else " ") for row in table}
        rows.append([name, *(rates.get(batch, "- ") for batch in batches)])
    return "\n".join(["Evaluations a second of the bare network, by batch; * is chosen.", *columns(rows)])


def others(steps):
    lines = []
    for name, step in steps.items():
        found = step.get("figures", {})
        if name == "agree" and found:
            lines.append(f"agree: the device's value differs from the CPU's by {number(found['value_difference'])}, its losses after a training by {number(found['loss_difference'])}")
        elif name.startswith("start-") and found:
            lines.append(f"{name}: first batch after {number(found.get('first_batch_tuning_s'))} s, {number(found.get('first_batch_remembered_s'))} s with remembered batch sizes")
        elif name == "change" and found.get("changes"):
            times = ", ".join(number(change["seconds_to_play"]) for change in found["changes"])
            gaps = ", ".join(number(change["longest_gap_s"]) for change in found["changes"])
            lines.append(f"change: new networks play after {times} s; longest gaps {gaps} s, {number(found['longest_gap_before_s'])} s without a change; "
                         f"{', '.join(number(change['evals_per_s']) for change in found['changes'])} evaluations/s meanwhile, {number(found['evals_per_s_before'])} before")
        elif name == "side-by-side" and found:
            lines.append(f"side-by-side: {found['networks']} networks in {step['seconds']:.0f} s, trained at {number(found['train_rows_per_s'])} rows/s, played at {number(found['selfplay_evals_per_s'])} evaluations/s")
        elif name == "two-generators" and found:
            lines.append(f"two-generators: {' + '.join(map(number, found['evals_per_s']))} = {number(found['sum_evals_per_s'])} evaluations/s")
        elif name == "memory" and found:
            resident = found["resident_mib"]
            device = "; ".join(f"GPU {one['index']}: {number(one['first'])} MiB, {number(one['last'])} at the end" for one in found["device_mib"])
            lines.append(f"memory: resident {number(resident['start'])} MiB, after a tenth {number(resident['tenth'])}, half {number(resident['half'])}, "
                         f"{found['seconds']} s {number(resident['end'])}; {device or 'device memory unknown'}; {number(found['evals_per_s'])} evaluations/s")
        elif name.startswith("training-") and found:
            ratio = f"{found['ratio']:.3f} of PyTorch's" if found.get("ratio") else "not compared with PyTorch"
            lines.append(f"{name}: {number(found['train_rows_per_s'])} rows/s in batches of {step['arguments']['batch']}, {ratio}")
    return "\n".join(lines)


def verdicts(steps):
    """Never a failure of the script: what is measured is what is there."""
    devices = figures(steps, "probe").get("devices", {})
    name = next(iter(devices.values()), "")
    is_known = bool(re.search(r"H[12]00", name)) and "MIG" not in name
    best = {}
    for step in bench_steps(steps):
        one, size = step["figures"], step["arguments"]["size"]
        if "," in one["device"] or step["name"].startswith("precision-") or one.get("ratio") is None:
            continue
        best.setdefault(size, []).append((one["ratio"], one["selfplay_evals_per_s"], step["arguments"]["games"]))
    rows = [["goal", "found", "", ""]]
    for size, found in best.items():
        if int(size.split("x")[1]) >= RATIO_FROM_CHANNELS:
            ratio, _, games = max(found)
            rows.append([f"{size}: self-play / raw at least {RATIO_GOAL:.2f}", f"{ratio:.3f}", f"{games} games in flight", reached(ratio >= RATIO_GOAL)])
        if size in RATE_GOALS and is_known:
            _, rate, games = max(found, key=lambda one: one[1])
            rows.append([f"{size}: {RATE_GOALS[size]:,} evaluations/s of self-play", number(rate), f"{games} games in flight", reached(rate >= RATE_GOALS[size])])
    if len(rows) == 1:
        return ""
    without = [] if is_known else [f"The goals of evaluations a second are for a whole H100 or H200; this is {name or 'unknown'}."]
    return "\n".join([*columns(rows, "<"), *without])


def reached(is_reached):
    return "reached" if is_reached else "NOT REACHED"


def failures(report):
    wrong = [step for step in report.get("steps", []) if step["status"] != "done" or step.get("why")]
    if "stopped" in report and wrong and wrong[0]["name"] == "probe":
        wrong = []
    lines = [f"{step['status'].upper() if step['status'] != 'done' else 'note'} {step['name']}: {step.get('why')}" for step in wrong]
    if "stopped" in report:
        lines.append(f"STOPPED: {report['stopped']}")
    elif report.get("steps") and not any(step["status"] not in ("done", "skipped") for step in wrong):
        lines.append("All steps were done.")
    return "\n".join(lines)


def columns(rows, side=">"):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(f"{cell:{side}{width}}" for cell, width in zip(row, widths)).rstrip() for row in rows]


def number(value):
    if value is None:
        return "-"
    if isinstance(value, float) and abs(value) < 10:
        return f"{value:.3g}"
    return f"{value:,.0f}"
