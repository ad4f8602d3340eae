#!/usr/bin/env python3
"""Are the texts of the manual whole, and are the flags there that they name?

    help_texts.py GPUIDX

Help, manual page and completion are three ways in which one table is printed: none may cut what the others have. A
flag that a text names belongs to the command that stands before it, to the command itself, or to one that the
paragraph names; a value that it is given is one of its choices.
"""
import re, subprocess, sys

GPUIDX = sys.argv[1]
wrong = 0


def ask(*args):
    return subprocess.run([GPUIDX, *args], check=True, capture_output=True, text=True).stdout


def complain(command, what, text):
    global wrong
    wrong += 1
    print("gpuidx %s: %s: %s" % (command, what, text), file=sys.stderr)


def flags_of_help(text):
    """{name: (argument, text)} of the section Flags."""
    flags, name = {}, None
    for line in text[text.index("\nFlags\n") + 7:].split("\n"):
        if not line.startswith("  "):
            break
        head = re.match(r"  (?:-\w, |    )--([a-z0-9-]+)(?:\[?=(\S+?)\]?)?(?: +(.*))?$", line)
        if head:
            name = head[1]
            flags[name] = [head[2] or "", head[3] or ""]
        else:
            flags[name][1] += " " + line.strip()
    return {name: (arg, " ".join(words.split())) for name, (arg, words) in flags.items()}


def flags_of_man(text):
    flags, name = {}, None
    for line in text[text.index("\nThe flags are:\n") if "\nThe flags are:\n" in text else 0:].split("\n"):
        head = re.match(r"\.It .*Fl \\-([a-z0-9-]+)", line)
        if head:
            name = head[1]
            flags[name] = ""
        elif line.startswith(".El"):
            break
        elif name:
            flags[name] += " " + line
    return {name: plain(words) for name, words in flags.items()}


def plain(roff):
    for a, b in (("\\fB", ""), ("\\fP", ""), ("\\&", ""), ("\\-", "-"), ("\\e", "\\")):
        roff = roff.replace(a, b)
    return " ".join(roff.split())


def flags_of_fish(text):
    """{command: {name: text}}"""
    all_of = {}
    for line in text.split("\n"):
        m = re.match(r"complete -c gpuidx(-bench)? -n '__fish_seen_subcommand_from ([a-z]+)' -l (\S+) .*-d '(.*)'$",
                     line)
        if m:
            all_of.setdefault("bench " + m[2] if m[1] else m[2], {})[m[3]] = m[4].replace("'\\''", "'")
    return all_of


def paragraphs(text):
    """Of a help page: the entries of lists, and what stands between blank lines."""
    for block in re.split(r"\n\s*\n", text):
        for entry in re.split(r"\n(?=  (?:-\w, |    )--[a-z])", block):
            yield " ".join(entry.split())


def check_named(command, text, flags):
    """flags: {command: {name: (argument, text)}}"""
    words = [c for c in flags if " " not in c]
    for paragraph in paragraphs(text):
        if re.search("#SBATCH|sbatch", paragraph): # flags of another program
            continue
        near = [c for c in words if re.search(r"\b%s\b" % c, paragraph)]
        near += [c for c in flags if " " in c and (c in paragraph or c.split()[0] == command.split()[0])]
        for m in re.finditer(r"(?:([a-z]+) )?--([a-z][a-z0-9-]*)(?:=([a-z0-9-]+)(?![\w:{./]))?", paragraph):
            before, name, value = m.groups()
            if before in words and not (before == "bench" or name in flags[command]):
                at = [before]
            else:
                at = [c for c in [command, *near] if c in flags]
            found = [flags[c][name] for c in at if name in flags[c]]
            others = ("version", "man", "list", "json" if "--version" in paragraph else "version")
            if not found and name not in others:
                complain(command, "it names a flag that is not there", m[0])
            if found and value and not any("|" not in arg or value in arg.split("|") for arg, _ in found):
                complain(command, "it names a value that is not there", m[0])


def main():
    commands = [c for c in ask("help", "--list").split() if c not in ("bench", "generate")]
    commands += ["bench " + c for c in ask("bench", "help", "--list").split()]
    pages = {c: ask(*c.split(), "--help-all") for c in commands}
    flags = {c: flags_of_help(pages[c]) for c in commands}
    fish = flags_of_fish(ask("completion", "fish"))
    for c in commands:
        man = flags_of_man(ask("help", "--man", *c.split()))
        if list(man) != list(flags[c]):
            complain(c, "help and manual page have other flags", " ".join(set(man) ^ set(flags[c])))
        for name, (_, text) in flags[c].items():
            if not re.search(r"[.?!]$|\(default: .+\)$", text):
                complain(c, "--%s ends with neither a full stop nor a default" % name, text[-60:])
            if text != man.get(name):
                complain(c, "--%s: help and manual page differ" % name, text[-60:])
            short = fish.get(c, {}).get(name)
            if short is not None and " ".join(short.split()) not in (text, text[:-1], text.rpartition(" (default:")[0]):
                complain(c, "--%s: help and the completion differ" % name, text[-60:])
        check_named(c, pages[c], flags)
    check_named("help", ask("help"), flags)
    check_named("help", ask("help", "bench"), flags)
    sys.exit(wrong > 0)


main()
