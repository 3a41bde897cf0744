package main

import (
	"fmt"
	"strings"
	"time"
)

// programOf returns the program that the model answers with. Method leaf returns a value that depends on the role, so
// each role has a different program. Method deepN calls deepN-1, and deep1 calls leaf. Method same returns its
// argument, and big returns 4 MB.
func programOf(role, method string) string {
	if method == "same" {
		return "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) { return call.Arg(0, \"x\"), nil }\n"
	}
	if method == "big" {
		return "package tool\n\nimport (\n\t\"recurgent\"\n\t\"strings\"\n)\n\nfunc Run(call *recurgent.Call) (any, error) { return strings.Repeat(\"x\", 4<<20-100), nil }\n"
	}
	body := "\tx, _ := call.Arg(0, \"x\").(float64)\n\treturn x + " + digits(role) + ", nil"
	if level, ok := strings.CutPrefix(method, "deep"); ok {
		next := "leaf"
		if level != "1" {
			next = fmt.Sprintf("deep%c", level[0]-1)
		}
		body = "\to := call.Tool(\"" + role + "\").Call(\"" + next +
			"\", call.Arg(0, \"x\"))\n\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn o.Value, nil"
	}
	return "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) {\n" + body + "\n}\n"
}

// digits returns the number in a role's name, or "1" if there is none.
func digits(role string) string {
	if n := strings.TrimLeft(role, "abcdefghijklmnopqrstuvwxyz"); n != "" {
		return n
	}
	return "1"
}

// ratio drives both lists of targets alternately and returns the median of the ratios of the first's rate to the
// second's.
func (b *bench) ratio(d *daemon, first, second []target, clients int) (float64, error) {
	var ratios []float64
	for range b.rounds {
		one, err := d.drive(first, clients, b.length)
		if err != nil {
			return 0, err
		}
		two, err := d.drive(second, clients, b.length)
		if err != nil {
			return 0, err
		}
		ratios = append(ratios, one.rate/two.rate)
	}
	return median(ratios), nil
}

// manyTools compares calls of many tools in turn with calls of one tool.
func (b *bench) manyTools() ([]string, error) {
	d, err := b.start(b.daemon, nil, "--runner-memory", "6GiB")
	if err != nil {
		return nil, err
	}
	defer d.stop()
	many, one := make([]target, b.tools), make([]target, 8)
	err = each(len(many), func(i int) (err error) {
		many[i], err = d.target("", fmt.Sprintf("tool%d", i), "leaf")
		return err
	})
	if err != nil {
		return nil, err
	}
	err = each(len(one), func(i int) (err error) {
		one[i], err = d.target("", "one", "leaf")
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := d.drive(many, 8, b.length); err != nil { // each has a runner afterwards
		return nil, err
	}
	got, err := b.ratio(d, many, one, 8)
	return []string{fmt.Sprintf(
			"| N = %d small tools round robin to N = 1, 8 clients, `--runner-memory 6GiB` | %.2f | 0.8 |", b.tools,
			got)},
		err
}

// manyOwners compares calls of one tool by many owners with calls by one owner.
func (b *bench) manyOwners() ([]string, error) {
	owners := make([]string, 64)
	for i := range owners {
		owners[i] = fmt.Sprintf("owner%d", i)
	}
	d, err := b.start(b.daemon, owners)
	if err != nil {
		return nil, err
	}
	defer d.stop()
	many, one := make([]target, len(owners)), make([]target, 8)
	err = each(len(many), func(i int) (err error) {
		many[i], err = d.target(owners[i], "shared", "leaf")
		return err
	})
	if err != nil {
		return nil, err
	}
	err = each(len(one), func(i int) (err error) {
		one[i], err = d.target(owners[0], "shared", "leaf")
		return err
	})
	if err != nil {
		return nil, err
	}
	got, err := b.ratio(d, many, one, 8)
	return []string{fmt.Sprintf("| %d owners of one tool to one owner, 8 clients | %.2f | 0.7 |", len(owners), got)},
		err
}

// nested compares calls that nest three deep with the same number of calls that do not nest.
func (b *bench) nested() ([]string, error) {
	d, err := b.start(b.daemon, nil)
	if err != nil {
		return nil, err
	}
	defer d.stop()
	deep, leaf := make([]target, 8), make([]target, 8)
	for i := range deep {
		if deep[i], err = d.target("", "d", "deep3"); err == nil {
			leaf[i], err = d.target("", "d", "leaf")
		}
		if err != nil {
			return nil, err
		}
	}
	if _, err := d.drive(deep, 8, b.length); err != nil {
		return nil, err
	}
	got, err := b.ratio(d, deep, leaf, 8)
	return []string{fmt.Sprintf("| depth 3 to the same number of leaf calls, 8 clients | %.2f | 0.6 |", 4*got)}, err
}

// cold measures calls that each start a new runner.
func (b *bench) cold() ([]string, error) {
	binaries := []string{b.daemon}
	if b.other != "" {
		binaries = append(binaries, b.other)
	}
	daemons, targets := make([]*daemon, len(binaries)), make([][]target, len(binaries))
	for i, binary := range binaries {
		d, err := b.start(binary, nil, "--isolation", "call")
		if err != nil {
			return nil, err
		}
		defer d.stop()
		daemons[i], targets[i] = d, make([]target, 8)
		for k := range targets[i] {
			if targets[i][k], err = d.target("", fmt.Sprintf("tool%d", k), "leaf"); err != nil {
				return nil, err
			}
		}
	}
	var lines []string
	for _, row := range []struct{ clients, goal int }{{1, 5}, {8, 20}} {
		times, used := make([][]time.Duration, len(binaries)), make([][]time.Duration, len(binaries))
		for range b.rounds {
			for i, d := range daemons {
				before := d.processorTime()
				got, err := d.drive(targets[i], row.clients, b.length)
				if err != nil {
					return nil, err
				}
				times[i] = append(times[i], got.median)
				used[i] = append(used[i], (d.processorTime()-before)/time.Duration(got.calls))
			}
		}
		line := fmt.Sprintf("| cold p50 without the model, %d clients", row.clients)
		for i := range binaries {
			line += fmt.Sprintf(" | %s: %.1f ms, of processor time %.1f", []string{"this", "the other"}[i],
				median(times[i]).Seconds()*1000, median(used[i]).Seconds()*1000)
		}
		lines = append(lines, line+fmt.Sprintf(" | %d ms |", row.goal))
	}
	return lines, nil
}
