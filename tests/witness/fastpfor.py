#!/usr/bin/env python3
"""Hold the CPU codecs that `gpuidx bench codecs` compares with against Lemire's FastPFor, which is where papers take
their figures from.

    tests/witness/fastpfor.py GPUIDX [--log2n N,..] [--seed S] [--least RATIO]      needs pip's pyfastpfor

Uniform lists of 2^N docids below 2^29 (22 by default) are made; FastPFor packs its d-gaps and decodes them, one core.
A call from Python costs about a microsecond, so each codec is timed with calls of two lengths and the difference is
what counts. Beside that stands what gpuidx measures for its own versions on a list of that kind. Exit status 1: what
FastPFor decodes is not what it was given, or a size of ours differs from its by more than 0.1 bits an integer. Speeds
are printed and not judged, unless RATIO is given: then ours has to reach so much of FastPFor's.
"""
import argparse
import json
import subprocess
import sys
import time

PAIRS = (("bp32", "BP32"), ("simdbp128", "simdbinarypacking"), ("varintgb", "varintgb"), ("streamvbyte", "streamvbyte"))
SHORT, LONG = 2048, 32768  # integers a call


def median_seconds(work, runs=9):
    times = []
    for _ in range(runs):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return sorted(times)[runs // 2]


def pack(np, codec, gaps, length):
    """Pack and decode the list in calls of this many integers, and compare; the time of a call."""
    packed, out = [], np.zeros(length + 1024, np.uint32)
    for i in range(0, len(gaps), length):
        piece = np.ascontiguousarray(gaps[i:i + length])
        buffer = np.zeros(2 * length + 1024, np.uint32)
        n = codec.encodeArray(piece, length, buffer, len(buffer))
        packed.append((buffer[:n].copy(), n))
        codec.decodeArray(packed[-1][0], n, out, length)
        if not (out[:length] == piece).all():
            sys.exit("fastpfor: what was decoded is not what was encoded")
    return packed, out


def fastpfor_speed(np, codec, gaps):
    """Millions of integers a second, and bits an integer."""
    seconds = []
    for length in (SHORT, LONG):
        packed, out = pack(np, codec, gaps, length)

        def decode():
            for words, n in packed:
                codec.decodeArray(words, n, out, length)

        seconds.append(median_seconds(decode) / len(packed))
    return (LONG - SHORT) / (seconds[1] - seconds[0]) / 1e6, 32.0 * sum(n for _, n in packed) / len(gaps)


def ours(gpuidx, log2n):
    command = [gpuidx, "bench", "codecs", "--engine=cpu", "--model=uniform", "--format=json", "--from=%d" % log2n,
               "--to=%d" % log2n, "--codecs=" + ",".join(name for name, _ in PAIRS)]
    rows = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL).stdout)["rows"]
    return {row["codec"]: row for row in rows}


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("gpuidx")
    args.add_argument("--log2n", default="22")
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--least", type=float, default=0)
    args = args.parse_args()
    try:
        import numpy as np
        import pyfastpfor
    except ImportError as e:
        print("skipped: %s" % e)
        sys.exit(77)
    bad = 0
    print("%-5s %-14s %28s %28s %8s" % ("", "", "gpuidx: millions/s, bits", "FastPFor: millions/s, bits", "ratio"))
    for log2n in map(int, args.log2n.split(",")):
        n = 1 << log2n
        rng = np.random.default_rng(args.seed)
        docids = np.unique(rng.integers(0, 1 << 29, 2 * n))
        docids = np.sort(rng.permutation(docids)[:n])
        gaps = np.diff(docids, prepend=0).astype(np.uint32)
        rows = ours(args.gpuidx, log2n)
        for name, theirs in PAIRS:
            speed, bits = fastpfor_speed(np, pyfastpfor.getCodec(theirs), gaps)
            row = rows[name]
            ratio = row["integers"] / 1e6 / speed
            bad += ratio < args.least or abs(row["bits"] - bits) > 0.1
            print("2^%-3d %-14s %20.0f %7.2f %20.0f %7.2f %8.2f" % (log2n, row["method"], row["integers"] / 1e6,
                                                                    row["bits"], speed, bits, ratio))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
