package sandbox

//lint:file-ignore SA5002,SA5007,SA4010,SA5000 programs that misbehave on purpose

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// nativePrograms returns programs with all the rights of a Go program.
func nativePrograms(e *nativeEngine) map[string]func(*recurgent.Call) (any, error) {
	count := 0
	return map[string]func(*recurgent.Call) (any, error){
		"echo":   func(c *recurgent.Call) (any, error) { return c.Args, nil },
		"kwargs": func(c *recurgent.Call) (any, error) { return c.Kwargs, nil },
		"fail":   func(c *recurgent.Call) (any, error) { return nil, recurgent.Fail("low_utility", "nothing found") },
		"plain":  func(c *recurgent.Call) (any, error) { return nil, errors.New("plain") },
		"passes": func(c *recurgent.Call) (any, error) {
			return nil, fmt.Errorf("not now: %w", recurgent.FailRetriable("closed", "opens at eight"))
		},
		"oddtype": func(c *recurgent.Call) (any, error) { return nil, recurgent.Fail("No Type!", "x") },
		"panic":   func(c *recurgent.Call) (any, error) { panic("boom") },
		"loop": func(c *recurgent.Call) (any, error) {
			for {
			}
		},
		"sleep":  func(c *recurgent.Call) (any, error) { time.Sleep(time.Hour); return nil, nil },
		"select": func(c *recurgent.Call) (any, error) { select {} },
		"stack":  func(c *recurgent.Call) (any, error) { return recurse(1), nil },
		"memory": func(c *recurgent.Call) (any, error) {
			var all [][]byte
			for {
				b := make([]byte, 8<<20)
				for i := 0; i < len(b); i += 4096 {
					b[i] = 1
				}
				all = append(all, b)
			}
		},
		"huge": func(c *recurgent.Call) (any, error) { return len(make([]byte, 1<<40+len(c.Args))), nil },
		"maprace": func(c *recurgent.Call) (any, error) {
			runtime.GOMAXPROCS(2) // a runner has one, and goroutines that take turns rarely collide
			m := map[int]int{}
			for g := range 4 {
				go func() {
					for i := 0; ; i++ {
						m[i%7] = g
					}
				}()
			}
			time.Sleep(time.Hour)
			return nil, nil
		},
		"gopanic": func(c *recurgent.Call) (any, error) {
			go panic("in a goroutine")
			time.Sleep(time.Hour)
			return nil, nil
		},
		"gobomb": func(c *recurgent.Call) (any, error) {
			for range 20000 {
				go func() { select {} }()
			}
			recurse(1)
			return nil, nil
		},
		"leak": func(c *recurgent.Call) (any, error) {
			go func() { time.Sleep(time.Hour) }()
			return "leaked",
				nil
		},
		"exit": func(c *recurgent.Call) (any, error) { os.Exit(0); return nil, nil },
		"segv": func(c *recurgent.Call) (any, error) {
			syscall.Kill(syscall.Getpid(), syscall.SIGSEGV)
			return nil,
				nil
		},
		"nan":       func(c *recurgent.Call) (any, error) { return math.NaN(), nil },
		"channel":   func(c *recurgent.Call) (any, error) { return make(chan int), nil },
		"bigvalue":  func(c *recurgent.Call) (any, error) { return strings.Repeat("x", 5<<20), nil },
		"deepvalue": func(c *recurgent.Call) (any, error) { return deep(1000), nil },
		"count":     func(c *recurgent.Call) (any, error) { count++; return count, nil },
		"setcontext": func(c *recurgent.Call) (any, error) {
			c.Context["new"] = 1
			c.Context["changed"] = []any{"b"}
			delete(c.Context, "gone")
			return "ok", nil
		},
		"plant":        func(c *recurgent.Call) (any, error) { return "plant", nil },
		"plantcontext": func(c *recurgent.Call) (any, error) { c.Context["k"] = "plant"; return 1, nil },
		"badcontext":   func(c *recurgent.Call) (any, error) { c.Context["f"] = func() {}; return "ok", nil },
		"context":      func(c *recurgent.Call) (any, error) { return c.Context, nil },
		"history":      func(c *recurgent.Call) (any, error) { return len(c.History()), nil },
		"page":         func(c *recurgent.Call) (any, error) { return c.HistoryPage(3, 4), nil },
		"content": func(c *recurgent.Call) (any, error) {
			return []any{c.Content("a"), c.Content("missing")},
				nil
		},
		"tools":  func(c *recurgent.Call) (any, error) { return c.Tools(), nil },
		"nested": func(c *recurgent.Call) (any, error) { return c.Tool("adder").Call("add", 1, 2), nil },
		"delegate": func(c *recurgent.Call) (any, error) {
			return c.Delegate("bad", recurgent.Contract{}).Call("x"),
				nil
		},
		"flood":   func(c *recurgent.Call) (any, error) { return historyFlood(c) },
		"between": func(c *recurgent.Call) (any, error) { return historyBetween(c) },
		"askloop": func(c *recurgent.Call) (any, error) {
			for {
				c.Tools()
			}
		},
		"fetch": func(c *recurgent.Call) (any, error) {
			r, err := c.FetchWith(recurgent.Request{URL: c.Args[0].(string)})
			if err != nil {
				return nil, err
			}
			return r.Body, nil
		},
		"clock":  func(c *recurgent.Call) (any, error) { e.counter.clock++; return e.now.String(), nil },
		"random": func(c *recurgent.Call) (any, error) { e.counter.randomness++; return e.seed, nil },
		"stderr": func(c *recurgent.Call) (any, error) {
			for {
				os.Stderr.WriteString(strings.Repeat("noise ", 1000))
			}
		},
		"openfile": func(c *recurgent.Call) (any, error) {
			b, err := os.ReadFile("/etc/passwd")
			return string(b),
				err
		},
	}
}

// historyFlood asks for the history 900 times, changes each copy and counts the changes that it finds in later ones.
func historyFlood(c *recurgent.Call) (any, error) {
	records, changed := 0, 0
	for range 900 {
		all := c.HistoryAll()
		records += len(all)
		if all[0].Role != "r" || all[0].Kwargs["k"] != "v" {
			changed++
		}
		all[0].Role, all[0].Kwargs["k"] = "mine", "mine"
	}
	return []int{records, changed}, nil
}

// historyBetween asks for the history twice, lets something happen, and asks again.
func historyBetween(c *recurgent.Call) (any, error) {
	seen := []any{len(c.History()), len(c.History())}
	c.Tool("other").Call("do")
	return append(seen, len(c.History()), len(c.HistoryAll()), len(c.History())), nil
}

func recurse(n int) int {
	var pad [1 << 10]byte
	pad[n%len(pad)] = byte(n)
	return recurse(n+1) + int(pad[0])
}

func deep(n int) any {
	var v any = 1
	for range n {
		v = []any{v}
	}
	return v
}
