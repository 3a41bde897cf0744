//go:build linux && testnogate

// Package independence runs the hostile corpus without the gate, with an interpreter that has all symbols: os, net,
// syscall, unsafe and reflect, without restriction. Nothing may get out: the boundary is the process, not the language
// (promise P1). It has the build tag testnogate, because it links the symbols of the whole standard library.
package independence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/traefik/yaegi/interp"
	"github.com/traefik/yaegi/stdlib"
	syscallsymbols "github.com/traefik/yaegi/stdlib/syscall"
	"github.com/traefik/yaegi/stdlib/unrestricted"
	unsafesymbols "github.com/traefik/yaegi/stdlib/unsafe"
	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/hostile"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.RunnerArg {
		os.Exit(worker.Serve(func(string) (worker.Engine, error) { return &engine{}, nil }))
	}
	if os.Getenv(withoutLandlock) != "" {
		if err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync,
			Policy: seccomp.Policy{DefaultAction: seccomp.ActionAllow,
				Syscalls: []seccomp.SyscallGroup{{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS),
					Names: []string{"landlock_create_ruleset"}}}}}); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// withoutLandlock is the environment variable under which the test's own process and all its runners have no landlock.
const withoutLandlock = "INDEPENDENCE_WITHOUT_LANDLOCK"

// TestNothingGetsOutReduced runs the same test at level reduced.
func TestNothingGetsOutReduced(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run", "^TestNothingGetsOut$", "-test.v")
	cmd.Env = append(os.Environ(), withoutLandlock+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "level=reduced") {
		t.Errorf("not at level reduced:\n%s", out)
	}
}

// engine runs whatever yaegi accepts, with all symbols that yaegi can provide.
type engine struct {
	run func(*recurgent.Call) (any, error)
}

func (e *engine) Load(source string) (*report.Facts, *report.Refusal, error) {
	i := interp.New(interp.Options{Unrestricted: true})
	for _, symbols := range []interp.Exports{stdlib.Symbols, syscallsymbols.Symbols, unsafesymbols.Symbols,
		unrestricted.Symbols, {"recurgent/recurgent": {
			"Call": reflect.ValueOf((*recurgent.Call)(nil)), "Tool": reflect.ValueOf((*recurgent.Tool)(nil)),
			"Request":  reflect.ValueOf((*recurgent.Request)(nil)),
			"Contract": reflect.ValueOf((*recurgent.Contract)(nil)),
			"Outcome":  reflect.ValueOf((*recurgent.Outcome)(nil)),
			"Fail":     reflect.ValueOf(recurgent.Fail),
		}}} {
		if err := i.Use(symbols); err != nil {
			return nil, nil, err
		}
	}
	if _, err := i.Eval(source); err != nil {
		return nil, nil, err
	}
	v, err := i.Eval("tool.Run")
	if err != nil {
		return nil, nil, err
	}
	run, ok := v.Interface().(func(*recurgent.Call) (any, error))
	if !ok {
		return nil, nil, errors.New("no Run")
	}
	e.run = run
	return &report.Facts{}, nil, nil
}

func (e *engine) Run(call *recurgent.Call, _ time.Time, _ uint64) (value any, err error, panicked *rt.Panic) {
	defer func() {
		if v := recover(); v != nil {
			value, err, panicked = nil, nil, &rt.Panic{Class: "string", Message: fmt.Sprint(v)}
		}
	}()
	value, err = e.run(call)
	return value, err, nil
}

func (e *engine) Reads() (int, int) { return 0, 0 }

func (e *engine) Encode(v any) (json.RawMessage, error) { return json.Marshal(v) }

// canary is a secret in the daemon's environment.
const canary = "canary-7f3a9c51e2"

func TestNothingGetsOut(t *testing.T) {
	t.Setenv("RECURGENT_CANARY", canary)
	o := sandbox.DefaultOptions()
	o.Require = "reduced"
	p, err := sandbox.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	t.Log(p.Status())

	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var knocks atomic.Int64
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			knocks.Add(1)
			c.Close()
		}
	}()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	programs, err := hostile.Programs()
	if err != nil {
		t.Fatal(err)
	}
	programs = append(programs, aimed(dir, listener.Addr().(*net.TCPAddr).Port)...)
	before := stray(t)
	ran := 0
	for _, prog := range programs {
		switch prog.Class {
		case "fs", "net", "proc", "escape", "race", "aimed":
		default:
			continue
		}
		r := p.Run(t.Context(), sandbox.Request{Program: sandbox.Program{Source: prog.Source,
			Checksum: agent.Checksum(prog.Source)}, Owner: agent.Owner{Name: "local"}, Role: "r", Method: "m",
			CallID: prog.Name,
			Args:   []json.RawMessage{json.RawMessage("7")}, Now: time.Unix(0, 0), Timeout: time.Second}, host{})
		if r.Failure == nil || r.Failure.Type != agent.ErrInvalidCode {
			ran++
		}
		said := fmt.Sprintf("%s %+v %+v", r.Value, r.Authored, r.Failure)
		for _, leak := range []string{canary, "root:x:", "root:*:", "/bin/sh", "OPENAI"} {
			if strings.Contains(said, leak) {
				t.Errorf("%s: %q came out: %.300s", prog.Name, leak, said)
			}
		}
		if prog.Class == "aimed" && r.Failure == nil && r.Authored == nil {
			t.Errorf("%s got through: %.300s", prog.Name, said)
		}
		control := p.Run(t.Context(),
			sandbox.Request{Program: sandbox.Program{Source: control, Checksum: "sha256:control"},
				Owner: agent.Owner{Name: "local"}, Role: "r", Method: "m", CallID: "c", Timeout: time.Minute}, host{})
		if string(control.Value) != `"aGVsbG8="` {
			t.Fatalf("after %s the control call says %s %+v", prog.Name, control.Value, control.Failure)
		}
	}
	if knocks.Load() > 0 {
		t.Errorf("%d connections reached the daemon's listener", knocks.Load())
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("files were made: %v", entries)
	}
	if now := stray(t); now != before {
		t.Errorf("files were made: %s", now)
	}
	t.Logf("%d programs ran, of %d", ran, len(programs))
	if ran < 60 {
		t.Errorf("only %d programs ran: the test tests nothing", ran)
	}
}

const control = `package tool

import (
	"encoding/base64"

	"recurgent"
)

func Run(call *recurgent.Call) (any, error) { return base64.StdEncoding.EncodeToString([]byte("hello")), nil }
`

func stray(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/tmp/recurgentd-hostile*")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(found, " ")
}

// aimed returns programs that know where the daemon is.
func aimed(dir string, port int) []hostile.Program {
	var out []hostile.Program
	for name, body := range map[string][2]string{
		"write":   {"os", `return 1, os.WriteFile("` + dir + `/made", []byte("x"), 0o666)`},
		"mkdir":   {"os", `return 1, os.Mkdir("` + dir + `/made", 0o777)`},
		"symlink": {"os", `return 1, os.Symlink("/etc/passwd", "` + dir + `/made")`},
		"dial":    {"net", fmt.Sprintf(`c, err := net.Dial("tcp", "127.0.0.1:%d"); return c != nil, err`, port)},
		"http": {"net/http", fmt.Sprintf(`r, err := http.Get("http://127.0.0.1:%d/"); return r != nil, err`,
			port)},
		"listen": {"net", `l, err := net.Listen("tcp", "127.0.0.1:0"); return l != nil, err`},
		"unix":   {"net", `l, err := net.Listen("unix", "` + dir + `/made"); return l != nil, err`},
		"environ": {"os", fmt.Sprintf(`b, err := os.ReadFile("/proc/%d/environ"); return string(b), err`,
			os.Getpid())},
		"memory": {"os", fmt.Sprintf(`f, err := os.OpenFile("/proc/%d/mem", os.O_RDWR, 0); return f != nil, err`,
			os.Getpid())},
		"signal": {"syscall", fmt.Sprintf(`return 1, syscall.Kill(%d, syscall.SIGTERM)`, os.Getpid())},
		"ptrace": {"syscall", fmt.Sprintf(`return 1, syscall.PtraceAttach(%d)`, os.Getpid())},
		"exec": {"os/exec", `b, err := exec.Command("/bin/sh", "-c", "touch ` + dir +
			`/made").CombinedOutput(); return string(b), err`},
		"forkexec":  {"syscall", `pid, err := syscall.ForkExec("/bin/true", nil, nil); return pid, err`},
		"rawsocket": {"syscall", `_, _, e := syscall.RawSyscall(syscall.SYS_SOCKET, 2, 1, 0); if e != 0 { return nil, e }; return 1, nil`},
		"rawthread": {"syscall", `_, _, e := syscall.RawSyscall(syscall.SYS_CLONE, 0x10900|0x20200, 0, 0); if e != 0 { return nil, e }; return 1, nil`},
		"shared":    {"syscall", `b, err := syscall.Mmap(-1, 0, 1<<30, 3, syscall.MAP_SHARED|syscall.MAP_ANON); return len(b), err`},
		"growing":   {"syscall", `b, err := syscall.Mmap(-1, 0, 1<<30, 3, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_GROWSDOWN); return len(b), err`},
		"lock":      {"syscall", `return 1, syscall.Mlockall(1)`},
		"threads":   {"runtime", `made := make(chan int); for range 600 { go func() { runtime.LockOSThread(); made <- 1; select {} }() }; for range 600 { <-made }; return 1, nil`},
		"rawopen":   {"syscall", `fd, err := syscall.Open("/etc/passwd", 0, 0); return fd, err`},
	} {
		source := "package tool\n\nimport (\n\t\"" + body[0] +
			"\"\n\n\t\"recurgent\"\n)\n\nfunc Run(call *recurgent.Call) (any, error) {\n\t" + body[1] + "\n}\n"
		out = append(out, hostile.Program{Name: "aimed-" + name, Class: "aimed", Source: source})
	}
	return out
}

// host answers nothing.
type host struct{}

func (host) Call(context.Context, string, string, []json.RawMessage, json.RawMessage) agent.Outcome {
	return agent.Failed(agent.ErrDenied, "no")
}
func (host) Refuse(context.Context, string, string, []json.RawMessage, json.RawMessage, string) agent.Outcome {
	return agent.Outcome{}
}
func (host) Delegate(context.Context, string, json.RawMessage) *sandbox.AuthoredError {
	return &sandbox.AuthoredError{Type: agent.ErrDenied, Message: "no"}
}
func (host) Tools(context.Context) (json.RawMessage, error) { return json.RawMessage("{}"), nil }
func (host) History(context.Context, bool, bool, int, int) (json.RawMessage, error) {
	return json.RawMessage("[]"), nil
}
func (host) Predict(context.Context, json.RawMessage, json.RawMessage) (json.RawMessage, *sandbox.AuthoredError) {
	return nil, nil
}
func (host) Revision(context.Context, string) int64                   { return -1 }
func (host) Content(context.Context, string) (json.RawMessage, error) { return nil, nil }
func (host) OpenFile(context.Context, string) (*sandbox.OpenFile, *sandbox.AuthoredError) {
	return nil, &sandbox.AuthoredError{Type: "not_found", Message: "no file"}
}
func (host) CreateFile(context.Context, string, string, string) (sandbox.NewFile, *sandbox.AuthoredError) {
	return nil, &sandbox.AuthoredError{Type: "denied", Message: "no file"}
}
