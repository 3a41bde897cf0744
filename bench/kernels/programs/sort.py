class Random:
    def __init__(self, state):
        self.state = state

    def next(self, limit):
        self.state = (self.state * 1664525 + 1013904223) & 0xFFFFFFFF
        return (self.state >> 8) % limit


class Person:
    def __init__(self, name, age):
        self.name, self.age = name, age


def run(n):
    r = Random(7)
    people = [Person("p%06d" % r.next(1000000), r.next(90)) for _ in range(n)]
    people.sort(key=lambda p: (p.age, p.name))
    return ["%s:%d" % (p.name, p.age) for p in people[::n // 8 + 1]]
