import re

LINE = re.compile(r"^(\d{4})-(\d{2})-(\d{2}) \[(\w+)\] user=(\w+) took (\d+)ms$")
DIGIT = re.compile(r"[0-9]+")


def run(n):
    levels = ["info", "warn", "error"]
    log = []
    for i in range(n):
        log.append("2026-%02d-%02d [%s] user=u%d took %dms" % (i % 12 + 1, i % 28 + 1, levels[i % 3], i % 17, i % 250))
    counts = {}
    digits = 0
    for line in "\n".join(log).split("\n"):
        m = LINE.match(line)
        if m is None:
            continue
        counts[m.group(4)] = counts.get(m.group(4), 0) + 1
        digits += len(DIGIT.findall(line))
        if DIGIT.sub("#", m.group(5)) != "u#":
            digits += 1
    return [counts, digits]
