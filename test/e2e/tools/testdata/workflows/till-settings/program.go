package tool

import (
	"bufio"
	"sort"
	"strings"

	"recurgent"
)

type name struct{ section, key string }

func read(call *recurgent.Call, ref any) (map[name]string, error) {
	in, err := call.OpenText(ref)
	if err != nil {
		return nil, err
	}
	out := map[name]string{}
	section := ""
	sc := bufio.NewScanner(in)
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		switch {
		case line == "" || line[0] == ';' || line[0] == '#':
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			section = strings.ToLower(strings.TrimSpace(line[1 : len(line)-1]))
		default:
			if k, v, ok := strings.Cut(line, "="); ok {
				out[name{section, strings.ToLower(strings.TrimSpace(k))}] = strings.TrimSpace(v)
			}
		}
	}
	return out, sc.Err()
}

func Run(call *recurgent.Call) (any, error) {
	a, err := read(call, call.Arg(0, "a"))
	if err != nil {
		return nil, err
	}
	b, err := read(call, call.Arg(1, "b"))
	if err != nil {
		return nil, err
	}
	var names []name
	for n := range a {
		names = append(names, n)
	}
	for n := range b {
		if _, ok := a[n]; !ok {
			names = append(names, n)
		}
	}
	sort.Slice(names, func(i, j int) bool {
		if names[i].section != names[j].section {
			return names[i].section < names[j].section
		}
		return names[i].key < names[j].key
	})
	value := func(m map[name]string, n name) any {
		if v, ok := m[n]; ok {
			return v
		}
		return nil
	}
	out := []map[string]any{}
	for _, n := range names {
		va, vb := value(a, n), value(b, n)
		if va != vb {
			out = append(out, map[string]any{"section": n.section, "key": n.key, "a": va, "b": vb})
		}
	}
	return out, nil
}
