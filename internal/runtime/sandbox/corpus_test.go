package sandbox

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/hostile"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// control uses what hostile programs tend to poison.
const control = `package tool

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"sort"
	"strings"
	"time"
	"unicode"

	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	words := strings.Fields("b a c")
	sort.Strings(words)
	raw, err := json.Marshal(map[string]any{"raw": []byte("hello")})
	return []any{words, string(raw), err, base64.StdEncoding.EncodeToString([]byte("hello")), errors.Is(io.EOF, io.EOF), fmt.Sprint(io.EOF),
		big.NewInt(1), time.Unix(0, 0).UTC().Year(), unicode.IsDigit('1'), unicode.Is(unicode.Latin, 'a'), len(call.Args)}, nil
}
`

const controlValue = `value [["a","b","c"],"{\"raw\":\"aGVsbG8=\"}",null,"aGVsbG8=",true,"EOF",1,1970,true,true,1]`

// end describes a Result in the terms of the corpus.
func end(r Result) (string, string) {
	switch {
	case r.Failure != nil:
		return r.Failure.Type, ""
	case r.Authored != nil && r.Authored.Plain:
		return agent.ErrTool, ""
	case r.Authored != nil:
		return "authored", ""
	}
	return "value", string(r.Value)
}

// noDeadline is longer than any terminating program takes on a busy machine.
const noDeadline = 5 * time.Minute

// corpusTimeout returns the deadline of a program. A program that must not time out gets noDeadline, because a deadline
// that a busy machine could miss would test the machine.
func corpusTimeout(prog hostile.Program) time.Duration {
	if prog.Permits("timeout", "") {
		return time.Second
	}
	return noDeadline
}

// TestCorpus runs every hostile program and then a control program, and then every program once more in the runner that
// it may have poisoned.
func TestCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("long: hostile programs, most of which end by their deadline")
	}
	if wire.RaceBuild {
		t.Log("a race build has no limit of its data: the corpus would eat the machine's memory")
		return
	}
	runCorpus(t, compilePool(t, nil))
}

// TestCorpusUnderKill runs the corpus with every forbidden system call killing the runner: no permitted program may
// depend on one.
func TestCorpusUnderKill(t *testing.T) {
	if wire.RaceBuild || testing.Short() {
		return
	}
	runCorpus(t, compilePoolWith(t, nil, hooks{args: []string{wire.RunnerArg}, kill: true}))
}

func runCorpus(t *testing.T, p *Pool) {
	t.Helper()
	programs, err := hostile.Programs()
	if err != nil {
		t.Fatal(err)
	}
	ours := func(r Result) string {
		if r.Failure != nil {
			return fmt.Sprintf(" (%s: %.300s)", r.Failure.Detail, r.Failure.Message)
		}
		if r.Authored != nil {
			return fmt.Sprintf(" (%s: %.200s)", r.Authored.Type, r.Authored.Message)
		}
		return ""
	}
	ends := map[string]int{}
	var mu sync.Mutex
	queue := make(chan hostile.Program)
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for prog := range queue {
				for range 2 { // the second time in the runner that the first may have poisoned
					req := request(prog.Source)
					req.Program.Checksum = "sha256:" + prog.Name
					req.Timeout = corpusTimeout(prog)
					r := p.Run(t.Context(), req, &fakeHost{})
					how, value := end(r)
					mu.Lock()
					ends[how]++
					mu.Unlock()
					if !prog.Permits(how, value) {
						t.Errorf("%s: ended in %s %.200s%s, may end in %s", prog.Name, how, value, ours(r),
							strings.Join(prog.Allow, ", "))
					}
					if r.Failure != nil && r.Failure.Detail == "protocol" {
						t.Errorf("%s: %+v", prog.Name, r.Failure)
					}
					if r.Failure != nil {
						break // refused or dead: the second run would be the same
					}
				}
				after := request(control, 1)
				after.Timeout = noDeadline
				if r := p.Run(t.Context(), after, &fakeHost{}); said(r) != controlValue {
					t.Errorf("after %s the control call says %s, want %s %s", prog.Name, said(r), controlValue, ours(r))
				}
			}
		})
	}
	for _, prog := range programs {
		queue <- prog
	}
	close(queue)
	work.Wait()
	t.Log(ends)
}
