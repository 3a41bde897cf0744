def distance(s, t):
    previous = list(range(len(t) + 1))
    current = [0] * (len(t) + 1)
    for i in range(1, len(s) + 1):
        current[0] = i
        for j in range(1, len(t) + 1):
            cost = 1
            if s[i - 1] == t[j - 1]:
                cost = 0
            current[j] = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost)
        previous, current = current, previous
    return previous[len(t)]


def run(n):
    return distance("kitten " * n, "sitting " * n)
