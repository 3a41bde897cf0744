import json


def run(n):
    items = []
    for i in range(n):
        items.append({"id": i, "name": "item %d" % i, "price": i + 0.5, "tags": ["a", "b", "c"], "attrs": {"color": "red", "size": "l"}})
    data = json.dumps(items, separators=(",", ":"))
    back = json.loads(data)
    price, tags = 0.0, 0
    for it in back:
        price += it["price"]
        tags += len(it["tags"]) + len(it["attrs"])
    return [len(data), price, tags]
