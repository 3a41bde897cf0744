package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
	"github.com/recurgentd/recurgentd/internal/sampled"
)

// TestMaskedLayers removes one layer at a time, as an older kernel or a hardened host would, and compares the status
// with the expected one: the status is observed, never configured.
func TestMaskedLayers(t *testing.T) {
	native := func(extra ...string) []string { return append([]string{wire.RunnerArg, "native"}, extra...) }
	for _, c := range []struct {
		name  string
		hooks hooks
		level Level
		off   []string
		skip  bool
	}{
		{name: "none", hooks: hooks{args: native()}, level: LevelFull},
		{name: "no landlock", hooks: hooks{args: native("mask=landlock_create_ruleset")}, level: LevelReduced,
			off: []string{"landlock"}},
		{name: "landlock fails late", hooks: hooks{args: native("mask=landlock_restrict_self")}, level: LevelReduced,
			off: []string{"landlock"}},
		{name: "no seccomp", hooks: hooks{args: native("mask=seccomp")}, level: LevelProcess, off: []string{"seccomp"}},
		{name: "no namespaces", hooks: hooks{args: native(), plans: []plan{{uid: os.Geteuid() == 0}}},
			level: LevelReduced, off: []string{"netns", "pidns", "mntns", "ipcns"}},
		{name: "root stays root", hooks: hooks{args: native(),
			plans: []plan{{namespaces: plans()[0].namespaces, userns: plans()[0].userns}}}, level: LevelReduced,
			off: []string{"uid"}, skip: os.Geteuid() != 0},
		{name: "nothing but seccomp", hooks: hooks{args: native("mask=landlock_create_ruleset"), plans: []plan{{}}},
			level: LevelReduced, off: []string{"landlock", "netns"}},
		{name: "plan fails", hooks: hooks{args: native(), plans: []plan{{namespaces: 1 << 40},
			{uid: os.Geteuid() == 0}}}, level: LevelReduced, off: []string{"netns"}},
	} {
		if c.skip {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			p := testPool(t, func(o *Options) { o.Require = "process"; o.Blank = 0 }, c.hooks)
			s := p.Status()
			if s.Level != c.level && !(os.Geteuid() != 0 && s.Level == LevelReduced && c.level == LevelFull) {
				t.Errorf("level %s, want %s: %s", s.Level, c.level, s)
			}
			for _, layer := range c.off {
				if strings.HasPrefix(s.Layers[layer], "on") {
					t.Errorf("layer %s is said to be %s", layer, s.Layers[layer])
				}
			}
			if s.Level != LevelProcess && strings.Contains(s.String(), "ALLOWED") {
				t.Errorf("level %s with open probes: %s", s.Level, s)
			}
			if s.Level == LevelProcess && !strings.Contains(s.String(), "ALLOWED") {
				t.Errorf("without seccomp every probe was denied: %s", s)
			}
			if got := said(p.Run(t.Context(), request("echo", 1), &fakeHost{})); got != "value [1]" {
				t.Error(got)
			}
			if s.Level != LevelProcess {
				wantNothingOut(t, p)
			}
			if rank(s.Level) < rank(LevelFull) {
				o := DefaultOptions()
				o.Require = "full"
				if q, err := newPool(o, c.hooks); err == nil {
					q.Close()
					t.Error("required full, and it started")
				} else if !strings.Contains(err.Error(), "required is \"full\"") {
					t.Error(err)
				}
			}
		})
	}
}

// wantNothingOut runs Go functions with all rights of a Go program. The confinement alone must hold them (the
// independence test; P1).
func wantNothingOut(t *testing.T, p *Pool) {
	t.Helper()
	marker := t.TempDir() + "/marker"
	os.Chmod(t.TempDir(), 0o777)
	port, stop := listenLocal()
	defer stop()
	for _, source := range []string{"outfile", "outcreate", "outlist", "outenv", "outlisten", "outdial", "outudp",
		"outunix", "outexec", "outfork", "outkill", "outsymlink", "outchdir", "outsetuid", "outptrace", "outmemfd",
		"outmount",
		"outthread", "outshared", "outgrow", "outlock"} {
		req := request(source, marker, port, os.Getpid())
		got := p.Run(t.Context(), req, &fakeHost{})
		if got.Authored == nil {
			t.Errorf("%s got through: %s %+v", source, said(got), got.Failure)
		}
		for _, w := range []string{"not permitted", "denied", "not implemented", "unreachable"} {
			if got.Authored != nil && strings.Contains(got.Authored.Message, w) {
				break
			}
			if w == "unreachable" && got.Authored != nil {
				t.Errorf("%s was not refused for lack of right: %s", source, said(got))
			}
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program made a file")
	}
}

// TestAsNobody runs the tests of confinement as a user without rights, with user namespaces instead of root's.
func TestAsNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		return // the tests already run that way
	}
	programs := filepath.Dir(testProgram(t, "hostileprogram"))
	// In separate processes: a pool without user namespaces makes the daemon non-dumpable, and then that process cannot
	// create user namespaces.
	for _, tests := range sampled.Of([]string{"^(TestStatus|TestRun|TestKilledFromOutside)$", "^TestMaskedLayers$",
		"^TestInitIsConfined$"}, 2) {
		cmd := exec.Command("/proc/self/exe", "-test.run", tests, "-test.v")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: wire.Nobody, Gid: wire.Nobody}}
		cmd.Dir, cmd.Env = "/", []string{"TMPDIR=/tmp", "PATH=/usr/bin:/bin", programsDir + "=" + programs}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		for _, line := range strings.Split(string(out), "\n") {
			if strings.Contains(line, "sandbox level=") {
				t.Log(strings.TrimSpace(line))
				break
			}
		}
	}
}

// TestInheritedDescriptors checks that descriptors inherited by the daemon, or opened without close-on-exec, do not
// reach a runner.
func TestInheritedDescriptors(t *testing.T) {
	secret, err := os.CreateTemp(t.TempDir(), "secret")
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, secret.Fd(), syscall.F_SETFD, 0); errno != 0 {
		t.Fatal(errno)
	}
	p := nativePool(t, nil)
	r, failure := p.spawn(t.Context(), p.image)
	if failure != nil {
		t.Fatal(failure)
	}
	defer r.kill("test")
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", r.proc.Pid))
	if err != nil {
		return // not readable without root
	}
	for _, e := range entries {
		target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", r.proc.Pid, e.Name()))
		if target == secret.Name() {
			t.Errorf("descriptor %s of the runner is the daemon's %s", e.Name(), target)
		}
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", r.proc.Pid))
	if err == nil && !wire.RaceBuild && string(environ) != "GOMAXPROCS=1\x00" {
		t.Errorf("the runner's environment: %q", environ)
	}
}
