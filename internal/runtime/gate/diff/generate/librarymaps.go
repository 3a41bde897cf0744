package generate

// keysText uses a type as the key of maps. Inserting a key that is not comparable panics.
const keysText = `
	keys := []@T{@mkT, @mkT, @mkT, @mkT}
	m := map[@T]int{}
	for i, k := range keys {
		tryø("insert", func() { m[k] += i + 1 })
	}
	churnø(20)
	set := map[@T]struct{}{}
	of := map[@T]map[@T]string{}
	for i, k := range keys {
		tryø("lookup", func() {
			n, ok := m[k]
			logø(@shT(k), strconv.Itoa(n), strconv.FormatBool(ok))
			set[k] = struct{}{}
			if of[k] == nil {
				of[k] = map[@T]string{}
			}
			of[k][keys[0]] += strconv.Itoa(i)
		})
	}
	tryø("delete", func() { delete(m, keys[1]) })
	var list []string
	for k, n := range m {
		list = append(list, @shT(k)+strconv.Itoa(n))
	}
	sort.Strings(list)
	logø(list...)
	logø(strconv.Itoa(len(m)), strconv.Itoa(len(set)), strconv.Itoa(len(of)))
	boxed := map[any]int{}
	for i, k := range keys {
		tryø("any", func() { boxed[k] = i; boxed[[1]@T{k}] = i; boxed[&keys[i]] = i })
	}
	logø(strconv.Itoa(len(boxed)))
	clear(m)
	logø(strconv.Itoa(len(m)))
`

// manyKeysText detects pointers that the collector misses: it fills a map with keys and values that own memory, creates
// much garbage, and compares everything with what was put in.
const manyKeysText = `
	m := map[@T]@U{}
	of := map[string]string{}
	var keys []@T
	for i := range 150 {
		q := newø(uint64(i), 60)
		k, u := @mkT, @mkU
		k = @mkT
		if r = q; i%3 == 0 {
			k = @mkT
		}
		m[k] = u
		keys = append(keys, k)
		of[@shT(k)] = @shU(u)
	}
	churnø(300)
	wrong, missing := 0, 0
	for _, k := range keys {
		u, ok := m[k]
		if !ok {
			missing++
		}
		if len(m) == len(of) && of[@shT(k)] != @shU(u) {
			wrong++
		}
	}
	same := maps.Clone(m)
	for i, k := range keys {
		if i%2 == 0 {
			delete(m, k)
		}
	}
	churnø(100)
	logø(strconv.Itoa(wrong), strconv.Itoa(missing), strconv.Itoa(len(same)), strconv.Itoa(len(m)))
	var list []string
	for k, u := range m {
		list = append(list, @shT(k)+"="+@shU(u))
	}
	sort.Strings(list)
	for _, s := range list[:min(len(list), 5)] {
		logø(s)
	}
`

// mapText reads, changes and copies a map type, also a nil map.
const mapText = `
	m := @mkT
	if m == nil {
		m = @T{}
	}
	keys := slices.Collect(maps.Keys(m))
	for range 3 {
		k := @mkK
		tryø("insert", func() {
			m[k] = @mkE
			keys = append(keys, k)
		})
	}
	for _, k := range keys {
		e, ok := m[k]
		_ = e
		logø(strconv.FormatBool(ok))
	}
	alias := m
	if len(keys) > 0 {
		tryø("delete", func() { delete(alias, keys[len(keys)-1]) })
	}
	logø(@shT(m), strconv.Itoa(len(alias)))
	var none @T
	for range none {
		logø("none")
	}
	tryø("nil lookup", func() { logø(@shE(none[@mkK])) })
	tryø("nil insert", func() { none[@mkK] = @mkE })
	tryø("nil delete", func() { delete(none, @mkK) })
	copied := maps.Clone(m)
	clear(m)
	logø(@shT(copied), @shT(m), fmt.Sprintf("%T", copied))
	var list []string
	for k, e := range copied {
		delete(copied, k)
		list = append(list, @shK(k)+@shE(e))
	}
	sort.Strings(list)
	logø(list...)
`
