package interp

import (
	"reflect"
	"slices"
	"unsafe"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/tidwall/btree"
)

// A mapIter visits the keys that a map had at the start of a range, in sorted order, but for those deleted meanwhile.
type mapIter struct {
	rt   *rtype
	m    unsafe.Pointer
	keys keySource
}

// A keySource gives the keys of a range, each with its element; nil at the end.
type keySource interface {
	next(it *mapIter) (key, elem unsafe.Pointer)
}

// rangeMap begins a range over a map. Ranges that end early, or come again and again, must not cost more than natively: from the second range
// over a map of some size on, the machine keeps its keys in order.
func (mc *machine) rangeMap(rt *rtype, m unsafe.Pointer) *mapIter {
	it := &mapIter{rt: rt, m: m, keys: &sortedKeys{}}
	if m == nil || maplen(m) == 0 {
		return it
	}
	v := reflect.NewAt(reflectOf(rt), unsafe.Pointer(&m)).Elem()
	switch v.Type().Key().Kind() {
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		it.keys = &nativeKeys{v.MapRange()}
		return it
	}
	if o := mc.orders[m]; o != nil {
		it.keys = o.cursor()
		return it
	}
	keys := collectKeys(v)
	it.keys = keys
	if len(keys.list) >= leastOrdered && mc.rangedLately(m) {
		mc.keepOrder(m, keys)
	}
	return it
}

// nativeKeys are the keys of a map in no order, those that have none.
type nativeKeys struct{ r *reflect.MapIter }

func (n *nativeKeys) next(it *mapIter) (key, elem unsafe.Pointer) {
	for n.r.Next() {
		key = valuePointer(n.r.Key())
		if elem = mapaccess(it.rt, it.m, key); elem != nil {
			return key, elem
		}
	}
	return nil, nil
}

// sortedKeys are the keys of a map as of the start of a range.
type sortedKeys struct {
	list []reflect.Value
	odd  map[int]reflect.Value // elements of keys that are not equal to themselves, by index: no lookup finds them
	at   int
}

func collectKeys(v reflect.Value) *sortedKeys {
	s := &sortedKeys{}
	switch v.Type().Key().Kind() {
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128, reflect.Struct, reflect.Array, reflect.Interface:
	default:
		s.list = v.MapKeys()
		sortKeys(s.list)
		return s
	}
	type pair struct{ k, v reflect.Value }
	pairs := make([]pair, 0, v.Len())
	for r := v.MapRange(); r.Next(); {
		p := pair{k: r.Key()}
		if !p.k.Equal(p.k) {
			p.v = r.Value()
		}
		pairs = append(pairs, p)
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return rt.CompareKeys(a.k, b.k) })
	s.list = make([]reflect.Value, len(pairs))
	for i, p := range pairs {
		s.list[i] = p.k
		if p.v.IsValid() {
			if s.odd == nil {
				s.odd = map[int]reflect.Value{}
			}
			s.odd[i] = p.v
		}
	}
	return s
}

func (s *sortedKeys) next(it *mapIter) (key, elem unsafe.Pointer) {
	for s.at < len(s.list) {
		s.at++
		key = valuePointer(s.list[s.at-1])
		if elem = mapaccess(it.rt, it.m, key); elem != nil {
			return key, elem
		}
		if v, odd := s.odd[s.at-1]; odd && maplen(it.m) > 0 {
			return key, valuePointer(v)
		}
	}
	return nil, nil
}

// Maps that are ranged over again, and what is kept of them.
const (
	leastOrdered = 32 // keys of a map whose order is kept; the others cost little enough
	mostOrders   = 16
)

// A keyOrder has the keys of one map in order, while the map changes. Deleted keys leave it when a range meets them.
type keyOrder struct {
	tree  *btree.BTreeG[orderedKey]
	clock uint64 // counts keys that came in
	idle  int    // of these, since a range began
}

type orderedKey struct {
	v     reflect.Value // can be addressed
	since uint64        // of the order's clock
}

// rangedLately reports whether there was a range over the map already, and notes it. It holds no map; another one at the same
// address costs an order that nobody needs.
func (mc *machine) rangedLately(m unsafe.Pointer) bool {
	if slices.Contains(mc.ranged[:], uintptr(m)) {
		return true
	}
	mc.ranged[mc.rangedAt%len(mc.ranged)] = uintptr(m)
	mc.rangedAt++
	return false
}

// keepOrder begins to keep the order of a map's keys, unless comparison cannot distinguish them.
func (mc *machine) keepOrder(m unsafe.Pointer, keys *sortedKeys) {
	for i := 1; i < len(keys.list); i++ {
		if rt.CompareKeys(keys.list[i-1], keys.list[i]) == 0 {
			return
		}
	}
	if keys.odd != nil {
		return
	}
	o := &keyOrder{tree: btree.NewBTreeGOptions(func(a, b orderedKey) bool { return rt.CompareKeys(a.v, b.v) < 0 }, btree.Options{NoLocks: true})}
	for i, k := range keys.list {
		keys.list[i] = reflect.NewAt(k.Type(), valuePointer(k)).Elem()
		o.tree.Load(orderedKey{v: keys.list[i]})
	}
	if mc.orders == nil || len(mc.orders) >= mostOrders {
		mc.orders = map[unsafe.Pointer]*keyOrder{}
	}
	mc.orders[m] = o
}

// noteKey adds a key that is about to be assigned to the order of its map, where one is kept.
func (mc *machine) noteKey(rt *rtype, m, key unsafe.Pointer) {
	o := mc.orders[m]
	if o == nil || mapaccess(rt, m, key) != nil {
		return
	}
	v := reflect.New(reflectOf(rt).Key()).Elem()
	v.Set(reflect.NewAt(v.Type(), key).Elem())
	o.clock++
	o.idle++
	had, known := o.tree.Get(orderedKey{v: v})
	switch {
	case !v.Equal(v), known && !had.v.Equal(v), o.idle > o.tree.Len()+leastOrdered:
		delete(mc.orders, m) // it has no place in the order, or nobody asks for the order any more
	case !known: // a known one was deleted, and is back
		o.tree.Set(orderedKey{v, o.clock})
	}
}

// forgetOrders is for what may change maps without noteKey.
func (mc *machine) forgetOrders() { mc.orders = nil }

// cursor begins a range over the keys that are there now.
func (o *keyOrder) cursor() *orderCursor {
	o.idle = 0
	return &orderCursor{order: o, until: o.clock}
}

type orderCursor struct {
	order *keyOrder
	last  *orderedKey // that was given, nil before the first
	until uint64      // later keys came in after the range began
}

func (c *orderCursor) next(it *mapIter) (key, elem unsafe.Pointer) {
	var gone []orderedKey
	visit := func(k orderedKey) bool {
		if k.since > c.until || c.last != nil && rt.CompareKeys(k.v, c.last.v) <= 0 {
			return true
		}
		key = k.v.Addr().UnsafePointer()
		if elem = mapaccess(it.rt, it.m, key); elem == nil {
			gone, key = append(gone, k), nil
			return true
		}
		c.last = &k
		return false
	}
	if c.last == nil {
		c.order.tree.Scan(visit)
	} else {
		c.order.tree.Ascend(*c.last, visit)
	}
	for _, k := range gone {
		c.order.tree.Delete(k)
	}
	return key, elem
}
