package tier

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/beneath"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/seal"
)

// A program that is hot is compiled, proved by its fixtures and by twenty calls, and then answers.
func TestHotProgramGoesNative(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), nil)
		defer r.Stop()
		r.calls("same", 2)
		r.want("same", "idle")
		r.calls("same", 1)
		r.want("same", "checking")
		r.calls("same", Checks-1)
		if v := r.View(r.key("same")); v.State != "checking" || v.Checked != Checks-1 || v.Checks != Checks {
			t.Errorf("before the last check: %+v", v)
		}
		r.calls("same", 1)
		r.want("same", "native")
		if res := r.call("same", "5"); res.Tier != sandbox.TierNative || string(res.Value) != "5" {
			t.Errorf("the next call ran on %s and gave %s", res.Tier, res.Value)
		}
		if x := r.program("same").Executable(); !slices.Equal(x.Facts.Imports, []string{"same"}) || !strings.HasPrefix(x.Digest, "sha256:") {
			t.Errorf("executable %+v", x)
		}
		if !slices.Equal(r.builds, []string{"same"}) {
			t.Errorf("builds: %v", r.builds)
		}
	})
}

// Calls that take little time in sum do not make a program hot, nor do calls that ended in no way of their own prove anything.
func TestWhatIsHot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), nil)
		defer r.Stop()
		p := r.program("same")
		for range 100 {
			p.Ran(&sandbox.Result{Tier: sandbox.TierEngine}, hot)
		}
		synctest.Wait()
		r.want("same", "idle")
		r.calls("same", 3)
		r.want("same", "checking")
		for _, res := range []sandbox.Result{{Failure: &sandbox.Failure{Type: agent.ErrTimeout}}, {Failure: &sandbox.Failure{Type: agent.ErrExecution, Ours: true}}, {Effects: sandbox.Effects{Truncated: true}}} {
			res.Tier = sandbox.TierEngine
			if Repeatable(&res) {
				t.Errorf("%+v is repeatable", res)
			}
		}
	})
}

// Every kind of difference turns the program off, on whatever it was found.
func TestDifferences(t *testing.T) {
	t.Parallel()
	for source, calls := range map[string]int{"other": 4, "raises": 4, "changes": 4, "asks": 4, "late": 14} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, t.TempDir(), nil)
				defer r.Stop()
				r.calls(source, calls-1)
				r.want(source, "checking")
				r.call(source, `13`)
				synctest.Wait()
				v := r.View(r.key(source))
				if v.State != "off" || !strings.Contains(v.Why, "on call 13") {
					t.Errorf("after a difference: %+v", v)
				}
				r.calls(source, 50)
				r.want(source, "off")
				if len(r.builds) != 1 {
					t.Errorf("it was built %d times", len(r.builds))
				}
				names, err := r.findings.names()
				if err != nil || len(names) != 1 {
					t.Fatalf("findings %v, %v", names, err)
				}
			})
		})
	}
}

// What is written out holds program, input, journal and both ends, with secrets masked, and can be read by nobody else.
func TestFinding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), nil)
		defer r.Stop()
		r.calls("other", 3)
		p := r.program("other")
		q := sandbox.Request{Program: sandbox.Program{Source: "other"}, Args: []json.RawMessage{json.RawMessage(`{"password":"seen","n":2}`)}, Context: map[string]json.RawMessage{"db_password": json.RawMessage(`"seen"`)}}
		res := r.box.Run(context.Background(), q, nil)
		res.Effects.Journal = json.RawMessage(`{"v":1,"asks":[{"op":"fetch","params":{"password":"seen"}}]}`)
		p.Offer(Sample{Origin: "call call_1", Request: q, Result: res})
		synctest.Wait()
		files, err := filepath.Glob(filepath.Join(r.findings.at.Path(findingsDir), "*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("files %v, %v", files, err)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		var f Finding
		if err := json.Unmarshal(data, &f); err != nil {
			t.Fatal(err)
		}
		if f.Program != "other" || f.Origin != "call call_1" || f.Native.Value == nil || f.Engine.Value == nil || f.Journal == nil || f.Context == nil || len(f.Args) != 1 || f.Truncated {
			t.Errorf("the finding lacks something: %s", data)
		}
		if strings.Contains(string(data), "seen") || strings.Count(string(data), "[masked]") != 5 {
			t.Errorf("secrets are not masked: %s", data)
		}
		if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	})
}

// Findings are bounded in number and bytes; the newest stay.
func TestFindingsAreBounded(t *testing.T) {
	t.Parallel()
	at, err := beneath.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	d := findings{at}
	var last string
	for i := range maxFindings + 5 {
		f := Finding{Role: "r", Method: "m", Checksum: string(agent.Encoded(i)), Journal: json.RawMessage(`"` + strings.Repeat("x", maxFindingBytes) + `"`), Program: "p"}
		path, err := d.write(&f)
		if err != nil || !f.Truncated {
			t.Fatalf("%v, truncated %t", err, f.Truncated)
		}
		last = path
	}
	names, err := d.names()
	if err != nil || len(names) != maxFindings || !slices.Contains(names, filepath.Base(last)) {
		t.Errorf("%d findings, %v; want %d with the last", len(names), err, maxFindings)
	}
	for _, name := range names {
		if info, err := os.Stat(at.Path(findingsDir + "/" + name)); err != nil || info.Size() > 4096 {
			t.Errorf("%s has %d bytes, %v", name, info.Size(), err)
		}
	}
}

// A difference on a fixture or an example counts before any call is compared.
func TestProofsComeFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), func(r *rig, _ *Options) {
			for _, origin := range []string{"fixture call_1", "example ex_1"} {
				arg := json.RawMessage(map[bool]string{true: "1", false: "13"}[origin == "fixture call_1"])
				r.proofs = append(r.proofs, Sample{Origin: origin, Request: sandbox.Request{Program: sandbox.Program{Source: "late"}, Args: []json.RawMessage{arg}},
					Result: sandbox.Result{Tier: sandbox.TierEngine, Value: arg}})
			}
		})
		defer r.Stop()
		r.calls("late", 3)
		if v := r.View(r.key("late")); v.State != "off" || !strings.Contains(v.Why, "on example ex_1") {
			t.Errorf("got %+v", v)
		}
	})
}

// A program that the engine itself does not run twice to the same end is no difference, and does not go native either.
func TestUnclear(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), nil)
		defer r.Stop()
		r.calls("random", 3+5*Checks-1)
		r.want("random", "checking")
		r.calls("random", 1)
		if v := r.View(r.key("random")); v.State != "off" || !strings.Contains(v.Why, "not end the same way twice") {
			t.Errorf("got %+v", v)
		}
		if names, _ := r.findings.names(); len(names) != 0 {
			t.Errorf("written out: %v", names)
		}
	})
}

// A build that fails is tried again after a delay that doubles; one that cannot succeed is not.
func TestBuildsThatFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), func(r *rig, _ *Options) {
			r.build = func(context.Context, string) error { return errors.New("no space left on device") }
		})
		defer r.Stop()
		r.calls("same", 10)
		if v := r.View(r.key("same")); v.State != "off" || !strings.Contains(v.Why, "no space left") || len(r.builds) != 1 {
			t.Errorf("after %d builds: %+v", len(r.builds), v)
		}
		time.Sleep(firstDelay)
		r.calls("same", 10)
		time.Sleep(firstDelay)
		r.calls("same", 10)
		if len(r.builds) != 2 {
			t.Errorf("%d builds before the second delay is over, want 2", len(r.builds))
		}
		r.build = nil
		time.Sleep(firstDelay)
		r.calls("same", 1)
		r.want("same", "checking")
		r.build = func(context.Context, string) error { return ErrUnsupported }
		r.calls("late", 3)
		time.Sleep(lastDelay)
		r.calls("late", 3)
		r.want("late", "off")
		if len(r.builds) != 4 {
			t.Errorf("%d builds: %v", len(r.builds), r.builds)
		}
	})
}

// A compiled program that fails while it is compared or in a call stays off, also after a restart; one whose file is gone is built again.
func TestFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, nil)
		r.calls("breaks", 4)
		r.want("breaks", "off")
		r.calls("same", 3+Checks)
		r.want("same", "native")
		p := r.program("same")
		p.Ran(&sandbox.Result{Native: &sandbox.NativeFault{Kind: sandbox.NativeBusy}}, hot)
		r.want("same", "native")
		p.Ran(&sandbox.Result{Native: &sandbox.NativeFault{Kind: sandbox.NativeMissing}}, hot)
		synctest.Wait()
		r.want("same", "native")
		if n := len(r.builds); n != 3 {
			t.Errorf("%d builds: %v", n, r.builds)
		}
		p.Ran(&sandbox.Result{Native: &sandbox.NativeFault{Kind: sandbox.NativeBroken, Message: "died"}}, hot)
		r.want("same", "off")
		if p.Executable() != nil {
			t.Error("it still has an executable")
		}
		r.Stop()
		r = newRig(t, dir, nil)
		defer r.Stop()
		r.want("same", "off")
		r.want("breaks", "off")
	})
}

// After a restart a proved program answers as soon as it is built again, a different one stays off, and another toolchain begins anew.
func TestRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, nil)
		r.calls("same", 3+Checks)
		r.calls("other", 4)
		r.Stop()
		if found, err := Differences(r.o.Dir); err != nil || len(found) != 1 || found[0].Checksum != "sum of other" || found[0].Role != "role" {
			t.Errorf("differences %+v, %v", found, err)
		}

		r = newRig(t, dir, nil)
		r.want("same", "idle")
		r.want("other", "off")
		r.calls("same", 1)
		r.want("same", "native")
		r.Stop()

		r = newRig(t, dir, func(_ *rig, o *Options) { o.Identity = "go2 one" })
		defer r.Stop()
		r.calls("same", 1)
		r.want("same", "idle")
		r.want("other", "idle")
	})
}

// An executable of other bytes than were proved is compared anew.
func TestOtherBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, nil)
		r.calls("same", 3+Checks)
		r.Stop()
		if err := os.Remove(filepath.Join(dir, "exe-same")); err != nil {
			t.Fatal(err)
		}
		r = newRig(t, dir, func(r *rig, _ *Options) { r.other = true })
		defer r.Stop()
		r.calls("same", 1)
		r.want("same", "checking")
	})
}

// A verdict counts with its seal alone: as it was written, at its place, in this directory. Any other is removed, whatever it says, and names no file that would be.
func TestVerdictsAreSealed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
		r := newRig(t, dir, nil)
		r.calls("same", 3+Checks)
		r.want("same", "native")
		r.Stop()
		file := glob(t, r.verdicts.at.Path(verdictsDir))[0]
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var sealed sealedVerdict
		if err := json.Unmarshal(data, &sealed); err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(data), `"file":"`, `"file":"`+victim+`","was":"`, 1)
		if changed == string(data) {
			t.Fatalf("the verdict names no file: %s", data)
		}
		plant := func(name string, do func() error) {
			t.Helper()
			if err := errors.Join(os.WriteFile(victim, []byte("kept"), 0o600), os.RemoveAll(file), do()); err != nil {
				t.Fatal(err)
			}
			r = newRig(t, dir, nil)
			defer r.Stop()
			r.gone["same"] = true // so that the files that a verdict names are removed
			r.ChangedAll("")
			delete(r.gone, "same")
			r.calls("same", 1)
			r.want("same", "idle")
			if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: the file stays: %v", name, err)
			}
			if kept, err := os.ReadFile(victim); err != nil || string(kept) != "kept" {
				t.Errorf("%s: the file that it names is %q, %v", name, kept, err)
			}
		}
		write := func(text string) func() error { return func() error { return os.WriteFile(file, []byte(text), 0o600) } }
		plant("another file", write(changed))
		plant("no seal", write(string(sealed.Verdict)))
		plant("another seal", write(strings.Replace(string(data), sealed.Seal, strings.Repeat("0", 64), 1)))
		plant("a link", func() error { return os.Symlink(victim, file) })
		plant("a pipe", func() error { return unix.Mkfifo(file, 0o600) })
		plant("a directory", func() error { return os.MkdirAll(filepath.Join(file, "x"), 0o700) })
		elsewhere := t.TempDir()
		plant("a directory of verdicts elsewhere", func() error {
			verdicts := filepath.Dir(file)
			return errors.Join(os.WriteFile(filepath.Join(elsewhere, filepath.Base(file)), data, 0o600), os.RemoveAll(verdicts), os.Symlink(elsewhere, verdicts))
		})
		if left := glob(t, elsewhere); len(left) != 1 {
			t.Errorf("what a link led to has %v", left)
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		plant("of another installation", func() error {
			return errors.Join(write(string(data))(), os.Remove(filepath.Join(dir, "native", seal.File)))
		})
	})
}

// An executable that was damaged while the daemon was stopped is built again, and needs no new proof.
func TestDamagedWhileStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, nil)
		r.calls("same", 3+Checks)
		r.want("same", "native")
		r.Stop()
		if err := os.WriteFile(filepath.Join(dir, "exe-same"), []byte("damaged"), 0o755); err != nil {
			t.Fatal(err)
		}
		r = newRig(t, dir, nil)
		defer r.Stop()
		r.calls("same", 1)
		r.want("same", "native")
		if data, err := os.ReadFile(r.program("same").Executable().Path); err != nil || string(data) != "compiled same" {
			t.Errorf("the executable is %q, %v", data, err)
		}
	})
}

// Two namespaces prove the same program for themselves, over a restart too. What one of them had goes with it, and the
// executable with the last one.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, nil)
		r.calls("same", 3+Checks)
		r.calls("other", 4)
		r.want("same", "native")
		r.of = "acme"
		r.want("same", "idle")
		r.calls("same", 4)
		r.want("same", "checking")
		r.calls("same", Checks)
		r.want("same", "native")
		r.calls("other", 4)
		r.want("other", "off")
		r.Stop()

		r = newRig(t, dir, nil)
		defer r.Stop()
		for _, of := range []agent.Namespace{agent.DefaultNamespace, "acme"} {
			r.of = of
			r.want("other", "off")
			r.calls("same", 1) // its executable is found again
			r.want("same", "native")
		}
		r.ChangedAll("acme")
		r.want("same", "native")
		r.left["acme"] = true
		r.Erase("acme")
		r.want("same", "idle")
		r.want("other", "idle")
		r.of = agent.DefaultNamespace
		r.want("same", "native")
		r.want("other", "off")
		for dir, want := range map[string]int{r.verdicts.at.Path(verdictsDir): 2, r.findings.at.Path(findingsDir): 1} {
			if files := glob(t, dir); len(files) != want {
				t.Errorf("%s has %v, want %d files", dir, files, want)
			}
		}
		if files, _ := filepath.Glob(filepath.Join(dir, "exe-*")); len(files) != 2 {
			t.Errorf("executables: %v, want those of the other namespace", files)
		}
		r.Erase(agent.DefaultNamespace)
		if files, _ := filepath.Glob(filepath.Join(dir, "exe-*")); len(files)+len(glob(t, r.verdicts.at.Path(verdictsDir)))+len(glob(t, r.findings.at.Path(findingsDir))) != 0 {
			t.Errorf("files are left: %v", files)
		}
	})
}

func glob(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// What a method no longer runs is dropped; what is erased leaves no file. A difference is remembered as long as its generation is kept.
func TestDrop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), nil)
		defer r.Stop()
		r.calls("same", 3+Checks)
		r.calls("other", 4)
		before := r.program("same")
		r.Changed(agent.DefaultNamespace, "role", "another")
		r.want("same", "native")
		r.old["same"], r.old["other"] = true, true
		r.Changed(agent.DefaultNamespace, "role", "method")
		r.want("same", "idle")
		r.want("other", "off")
		if before.Executable() != nil {
			t.Error("a call that looked it up before still has the executable")
		}
		if files := glob(t, r.verdicts.at.Path(verdictsDir)); len(files) != 1 {
			t.Errorf("verdicts: %v, want that of the difference alone", files)
		}
		r.old["same"] = false
		r.calls("same", 3+Checks)
		r.want("same", "native")
		r.gone["same"], r.gone["other"] = true, true
		r.ChangedAll("")
		for _, dir := range []string{r.verdicts.at.Path(verdictsDir), r.findings.at.Path(findingsDir)} {
			if files := glob(t, dir); len(files) != 0 {
				t.Errorf("files are left: %v", files)
			}
		}
		if files, _ := filepath.Glob(filepath.Join(r.dir, "exe-*")); len(files) != 0 {
			t.Errorf("executables are left: %v", files)
		}
	})
}

// A program that is dropped while its verdict is written leaves no file.
func TestDroppedWhileItIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), nil)
		defer r.Stop()
		r.calls("same", 30)
		r.want("same", "native")
		p := r.program("same")
		written := p.verdict
		r.forget(p, true)
		p.keep(written) // by the worker, which had begun before
		if files := glob(t, r.verdicts.at.Path(verdictsDir)); len(files) > 0 {
			t.Errorf("left: %v", files)
		}
	})
}

// Stop ends a build, and begins none afterwards.
func TestStopEndsABuild(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), func(r *rig, _ *Options) {
			r.build = func(ctx context.Context, _ string) error { <-ctx.Done(); return context.Cause(ctx) }
		})
		r.calls("same", 3)
		r.want("same", "building")
		r.calls("late", 3)
		r.Stop()
		r.Stop()
		r.want("same", "idle")
		if !slices.Equal(r.builds, []string{"same"}) {
			t.Errorf("builds: %v", r.builds)
		}
	})
}

// Where too many builds wait, further programs wait for a later call; where too many programs are known, no more are.
func TestBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		r := newRig(t, t.TempDir(), func(r *rig, _ *Options) {
			r.build = func(ctx context.Context, _ string) error { <-block; return ErrUnsupported }
		})
		defer r.Stop()
		run := func(n int) *Program {
			p := r.Program(r.key(string(agent.Encoded(n))))
			p.Ran(&sandbox.Result{Timing: sandbox.Timing{Run: time.Second}}, agent.NativePolicy{MinCalls: 1})
			synctest.Wait()
			return p
		}
		for n := range maxBuilds + 1 {
			if v := run(n).View(); v.State != "building" {
				t.Fatalf("program %d: %+v", n, v)
			}
		}
		late := run(maxBuilds + 1)
		if v := late.View(); v.State != "idle" {
			t.Errorf("one too many: %+v", v)
		}
		close(block)
		synctest.Wait()
		if run(maxBuilds + 1); late.View().State != "off" {
			t.Errorf("the next call: %+v", late.View())
		}
		for n := range maxPrograms {
			r.Program(Key{agent.DefaultNamespace, "role", "other", string(agent.Encoded(n))})
		}
		if n := len(*r.programs.Load()); n > maxPrograms {
			t.Errorf("%d programs are known", n)
		}
		if n := r.Counts()["off"]; n != maxBuilds+2 {
			t.Errorf("%d programs are off, want %d", n, maxBuilds+2)
		}
	})
}

// A tier without a toolchain does nothing and says why.
func TestOff(t *testing.T) {
	t.Parallel()
	off, err := New(Options{Why: "no go command on PATH", Dir: filepath.Join(t.TempDir(), "none")})
	if err != nil {
		t.Fatal(err)
	}
	off.Begin(nil)
	defer off.Stop()
	for _, x := range []*Tier{off, nil} {
		p := x.Program(Key{"", "r", "m", "c"})
		if p != nil || p.Executable() != nil || p.Ran(&sandbox.Result{}, hot) {
			t.Errorf("a tier that is off has programs")
		}
		x.Changed("", "r", "m")
		x.Stop()
		if s := x.State(); s.On || s.Why == "" {
			t.Errorf("got %+v", s)
		}
	}
	if v := off.View(Key{}); v.State != "off" || !strings.Contains(v.Why, "no go command") {
		t.Errorf("got %+v", v)
	}
}
