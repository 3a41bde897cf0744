//go:build ops && linux

package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/app/apptest"
)

// underUnit makes the test binary confine itself as the unit's file says, and become the command that follows.
const underUnit = "RECURGENTD_TEST_UNDER_UNIT"

// A user such as DynamicUser= makes; nobody has it.
const dynamicUser = 61184

func TestMain(m *testing.M) {
	if calls := os.Getenv(underUnit); calls != "" {
		err := becomeService(strings.Fields(calls))
		fmt.Fprintln(os.Stderr, "cannot become the service:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// becomeService does by hand what systemd would do before it starts the service, as far as it could stand in the way of
// runners: no capability and none to be had, no new privileges, and the filters of system calls.
func becomeService(allowed []string) error {
	goruntime.LockOSThread() // what is set for a thread must be set for the one that execs
	hideProcesses()
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && os.Geteuid() == 0 {
			return err
		}
	}
	if os.Geteuid() == 0 {
		for _, err := range []error{syscall.Setgroups(nil), syscall.Setgid(dynamicUser), syscall.Setuid(dynamicUser)} {
			if err != nil {
				return err
			}
		}
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, underUnit+"=") })
	if allowed[0] != "any" {
		if err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync,
			Policy: unitPolicy(allowed)}); err != nil {
			return err
		}
	}
	return syscall.Exec(os.Args[1], os.Args[1:], env)
}

// hideProcesses does what ProtectProc=invisible does, where this user may: who may not tries
// without.
func hideProcesses() {
	if unix.Unshare(unix.CLONE_NEWNS) != nil || unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") != nil {
		return
	}
	_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "hidepid=invisible")
}

// unitPolicy is SystemCallFilter=, with the filters that MemoryDenyWriteExecute= and RestrictAddressFamilies= add.
func unitPolicy(allowed []string) seccomp.Policy {
	arg := func(name string, n uint32, op seccomp.Operation, value uint64) seccomp.NameWithConditions {
		return seccomp.NameWithConditions{Name: name,
			Conditions: []seccomp.Condition{{Argument: n, Operation: op, Value: value}}}
	}
	conditional := []seccomp.NameWithConditions{
		arg("mmap", 2, seccomp.BitsNotSet, unix.PROT_EXEC), arg("mmap", 2, seccomp.BitsNotSet, unix.PROT_WRITE),
		arg("mprotect", 2, seccomp.BitsNotSet, unix.PROT_EXEC),
		arg("socket", 0, seccomp.Equal, unix.AF_UNIX), arg("socket", 0, seccomp.Equal, unix.AF_INET),
		arg("socket", 0, seccomp.Equal, unix.AF_INET6),
	}
	names := slices.DeleteFunc(slices.Clone(allowed), func(name string) bool {
		return name == "mmap" || name == "mprotect" || name == "socket"
	})
	return seccomp.Policy{DefaultAction: seccomp.ActionErrno, Syscalls: []seccomp.SyscallGroup{
		{Action: seccomp.ActionAllow, Names: names}, {Action: seccomp.ActionAllow, NamesWithCondtions: conditional}}}
}

// unitSettings reads the unit: the values of each name, in order.
func unitSettings(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile("systemd/recurgentd.service")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			all[name] = append(all[name], value)
		}
	}
	return all
}

// allowedCalls are the system calls that SystemCallFilter= leaves, as far as this machine has them.
func allowedCalls(t *testing.T) []string {
	t.Helper()
	here, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{}
	for name := range groupCalls(t, "@default") { // what systemd always allows
		allowed[name] = true
	}
	for _, list := range unitSettings(t)["SystemCallFilter"] {
		list, deny := strings.CutPrefix(list, "~")
		for _, name := range strings.Fields(list) {
			for call := range groupCalls(t, name) {
				allowed[call] = !deny
			}
		}
	}
	var names []string
	for name, is := range allowed {
		if _, known := here.SyscallNames[name]; known && is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// groupCalls are the calls of a group such as @process; a call is a group of itself.
func groupCalls(t *testing.T, name string) map[string]bool {
	t.Helper()
	if !strings.HasPrefix(name, "@") {
		return map[string]bool{name: true}
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "syscall-filter", name).Output()
	if err != nil {
		t.Fatalf("systemd-analyze syscall-filter %s: %v", name, err)
	}
	calls := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		member := strings.TrimSpace(line)
		if member == name || member == "" || strings.HasPrefix(member, "#") {
			continue
		}
		for call := range groupCalls(t, member) {
			calls[call] = true
		}
	}
	return calls
}

// Systemd takes the unit as it is, and finds it less exposed than 3.0.
func TestOpsUnitIsHardened(t *testing.T) {
	dir := t.TempDir()
	run(t, nil, "go", "build", "-o", dir+"/recurgentd", "../cmd/recurgentd")
	data, err := os.ReadFile("systemd/recurgentd.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := strings.Replace(string(data), "ExecStart=/usr/bin/recurgentd ", "ExecStart="+dir+"/recurgentd ", 1)
	if unit == string(data) {
		t.Fatal("the unit starts something else")
	}
	if err := os.WriteFile(dir+"/recurgentd.service", []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no",
		dir+"/recurgentd.service").CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("recurgentd.service:")) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	run(t, nil, "systemd-analyze", "security", "--offline=true", "--threshold=29", "systemd/recurgentd.service")
}

// What the unit takes from the daemon, it must not take from the confinement of programs: with the unit's system calls
// the same layers are observed as without, programs are forged and run, and the end is clean.
func TestOpsUnitKeepsTheSandbox(t *testing.T) {
	if got := unitSettings(t)["RestrictNamespaces"]; !slices.Equal(got, []string{"no"}) {
		t.Fatalf("RestrictNamespaces=%q: runners make namespaces of all kinds", got)
	}
	dir := t.TempDir()
	run(t, nil, "go", "build", "-o", dir+"/recurgentd", "../cmd/recurgentd")
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // another user shall see the binary
		t.Fatal(err)
	}
	free := serveAs(t, dir, "any")
	calls := allowedCalls(t)
	bound := serveAs(t, dir, calls...)
	if free != bound {
		t.Errorf("under the unit's filters the sandbox is\n%s\nand without them\n%s", bound, free)
	}
	if !strings.Contains(bound, `"level":"full"`) && strings.Contains(free, `"level":"full"`) {
		t.Errorf("the sandbox is not full: %s", bound)
	}
	// The test can fail: a unit that keeps landlock from runners is seen.
	without := slices.DeleteFunc(calls, func(name string) bool { return strings.HasPrefix(name, "landlock_") })
	if less := serveAs(t, dir, without...); strings.Contains(free, `"landlock":"on`) &&
		strings.Contains(less, `"landlock":"on`) {
		t.Errorf("without its system calls landlock is said to be on: %s", less)
	}
}

// serveAs runs the daemon as the unit's user with these system calls, makes a cold and a warm call, and returns what
// the daemon observed of its sandbox.
func serveAs(t *testing.T, dir string, calls ...string) (observed string) {
	t.Helper()
	state, err := os.MkdirTemp(dir, "state")
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(state, dynamicUser, dynamicUser); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil { // another user shall see the binary
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary is where another user may not see it.
	if err := copyFile(self, dir+"/service.test"); err != nil {
		t.Fatal(err)
	}
	address := apptest.Address(t)
	t.Setenv(underUnit, strings.Join(calls, " "))
	t.Setenv("HOME", state)
	t.Setenv("XDG_CONFIG_HOME", "")
	daemon := start(t, state, dir+"/service.test", dir+"/recurgentd", "serve", "--provider", "replay", "--listen",
		address, "--data-dir", state)
	t.Setenv(underUnit, "")
	waitReady(t, "http://"+address, daemon)
	number := map[string]any{"deliverable": map[string]any{"type": "number"}}
	session := post(t.Context(), address, "/v1/sessions", map[string]any{"role": "calculator", "contract": number})
	for _, source := range []string{"generated", "persisted"} {
		reply := post(t.Context(), address, fmt.Sprintf("/v1/sessions/%v/calls", session["id"]),
			map[string]any{"method": "add", "args": []int{2, 3}})
		text, _ := json.Marshal(reply)
		if !strings.Contains(string(text), `"value":5`) || !strings.Contains(string(text), `"source":"`+source+`"`) {
			t.Errorf("a call answers %s, want 5 from a %s program", text, source)
		}
	}
	res, err := http.Get("http://" + address + "/v1/version")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var version struct{ Sandbox json.RawMessage }
	if err := json.NewDecoder(res.Body).Decode(&version); err != nil {
		t.Fatal(err)
	}
	if err := daemon.end(); err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
	return string(version.Sandbox)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
