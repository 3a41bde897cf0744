package daemon

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/cli"
	"github.com/recurgentd/recurgentd/internal/sampled"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// An archive's entries, in order.
type archiveEntries []archiveEntry

type archiveEntry struct {
	tar.Header
	data []byte
}

const archiveList = "MANIFEST.json"

// readArchive reads an export.
func readArchive(t *testing.T, file string) (all archiveEntries) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, archiveEntry{*h, data})
	}
}

// write writes the entries with a list that fits them.
func (all archiveEntries) write(t *testing.T, file string) {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	list := map[string]string{}
	put := func(e archiveEntry) {
		e.Size, e.Format = int64(len(e.data)), tar.FormatPAX
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.data); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(e.data)
		list[e.Name] = hex.EncodeToString(sum[:])
	}
	for _, e := range all {
		if e.Name != archiveList {
			put(e)
		}
	}
	text, err := json.Marshal(map[string]any{"schema_version": 1, "files": list})
	if err != nil {
		t.Fatal(err)
	}
	put(archiveEntry{tar.Header{Name: archiveList, Typeflag: tar.TypeReg, Mode: 0o600}, text})
	if err := errors.Join(w.Close(), zip.Close(), os.WriteFile(file, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (all archiveEntries) with(name, text string) archiveEntries {
	return append(slices.Clone(all), archiveEntry{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755},
		[]byte(text)})
}

// compilingDaemon is a daemon that has compiled worker.double into its own directory, with a connection that has a
// secret and a file.
func compilingDaemon(t *testing.T) (d *rig.Daemon, session string) {
	t.Helper()
	double := rig.Program("\tn, _ := call.Args[0].(float64)\n\treturn n * 2, nil")
	d = rig.StartIn(t, rig.NewModel(t, rig.Script{"worker.double": {double}}), []string{rig.OwnCompiler})
	if _, shared := d.Rows("SELECT 1"); shared {
		t.Skip("looks at a data directory")
	}
	pipe(t, d, "a-secret-of-weather", "connections", "set", "weather", "--host", "api.example.org")
	upload(d, http.StatusCreated, "?name=a.csv", "text/csv", "a,b\n1,2\n")
	session = d.Session("worker")
	d.WantValue(d.Call(session, "double", 4), 8, "generated")
	return d, session
}

// executable returns the path of the one executable of the daemon, and its bytes.
func executable(t *testing.T, d *rig.Daemon) (path string, data []byte) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(d.State(), "native", "cache", "exe", "*"))
	if err != nil || len(all) != 1 {
		t.Fatalf("executables: %v, %v", all, err)
	}
	if data, err = os.ReadFile(all[0]); err != nil {
		t.Fatal(err)
	}
	return all[0], data
}

// An export of a daemon that has compiled programs and stored secrets holds neither a compiled file nor a key. An
// import takes nothing of what somebody adds to it, says what it left out, and the daemon that starts on it runs, opens
// and trusts nothing of that.
func TestArchivesPlantNothing(t *testing.T) {
	t.Parallel()
	d, s := compilingDaemon(t)
	online, offline := filepath.Join(d.Dir, "online.tar.gz"), filepath.Join(d.Dir, "offline.tar.gz")
	d.Expect(0, nil, "store", "export", online)
	d.Stop(syscall.SIGTERM)
	if said := d.Expect(0, nil, "store", "export", offline); strings.Contains(said, "left out") {
		t.Errorf("an export of a sound directory leaves something out: %s", said)
	}
	key, err := os.ReadFile(filepath.Join(d.State(), "secrets.key"))
	if err != nil {
		t.Fatal(err)
	}
	name, compiled := executable(t, d)
	for _, file := range []string{online, offline} {
		for _, e := range readArchive(t, file) {
			top, _, _ := strings.Cut(e.Name, "/")
			if top == "native" || strings.HasSuffix(e.Name, ".key") || strings.HasSuffix(e.Name, ".idx") ||
				e.Name == "tools/index.json" || bytes.Contains(e.data, bytes.TrimSpace(key)) ||
				bytes.Contains(e.data, []byte("AGE-SECRET")) {
				t.Errorf("%s holds %s", file, e.Name)
			}
		}
	}
	planted := map[string]string{"native/cache/packages-go1.26.8/support.a": "!<arch> planted",
		"native/cache/exe/planted": "planted", "native/cache/exe/" + filepath.Base(name): string(compiled),
		"native/installation.key": strings.Repeat("k", 32),
		"secrets.key":             "# planted\n" + string(key), "anything/else": "planted",
		"tools/evil/run.json":                         "planted",
		"programs/" + strings.Repeat("0", 64) + ".go": "package tool // planted"}
	bad := readArchive(t, offline)
	for _, name := range slices.Sorted(maps.Keys(planted)) {
		bad = bad.with(name, planted[name])
	}
	file := filepath.Join(d.Dir, "planted.tar.gz")
	bad.write(t, file)
	if err := os.RemoveAll(d.State()); err != nil {
		t.Fatal(err)
	}
	d.Expect(0, []string{"left out of the archive: 4 files, made anew where they are needed: native/cache/exe/",
		"left out of the archive: 1 file, keys, which no archive may bring", ": secrets.key",
		"left out of the archive: 1 file, of no kind that this recurgentd knows: anything/else",
		"left out of the archive: 2 files, not what their names say: ", "1 connection with a stored secret: ",
		"--secrets-key-file"}, "store", "import", file)
	for name := range planted {
		if _, err := os.Lstat(filepath.Join(d.State(), name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was taken: %v", name, err)
		}
	}
	d.Start()
	r := d.Call(s, "double", 21)
	d.WantValue(r, 42, "persisted")
	if r.Program.BuildMs <= 0 {
		t.Errorf("the executable of an archive answers: %+v", r.Program)
	}
	if c := d.Get("/v1/connections/weather"); !strings.Contains(c["problem"].(string), "missing") {
		t.Errorf("the connection: %v", c)
	}
	pipe(t, d, "a-newer-secret", "connections", "set", "weather")
	if made, err := os.ReadFile(filepath.Join(d.State(),
		"secrets.key")); err != nil || bytes.Equal(made, key) || bytes.Contains(made, []byte("planted")) {
		t.Errorf("a later secret is sealed to the key of the archive: %v", err)
	}
}

// A directory whose key is gone, or with an executable of other bytes, and one of before there were seals, opens: its
// programs are compiled anew, and nothing that an earlier version noted about them stays.
func TestDirectoryWithoutSeals(t *testing.T) {
	t.Parallel()
	d, s := compilingDaemon(t)
	native := filepath.Join(d.State(), "native")
	for name, change := range sampled.Map(map[string]func(){
		"the key gone": func() { swap(t, filepath.Join(native, "installation.key"), "") },
		"other bytes":  func() { path, _ := executable(t, d); swap(t, path, "planted") },
		"an earlier format": func() {
			path, _ := executable(t, d)
			swap(t, path, "")
			rig.WriteAt(t, filepath.Join(native, "verdicts", "a.json"), "{}")
		},
	}, 2) {
		d.Stop(syscall.SIGTERM)
		change()
		d.Start()
		r := d.Call(s, "double", 21)
		d.WantValue(r, 42, "persisted")
		if r.Program.BuildMs <= 0 {
			t.Errorf("%s: it was not compiled anew: %+v", name, r.Program)
		}
		if _, err := os.Lstat(filepath.Join(native, "verdicts")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the verdicts stay: %v", name, err)
		}
		executable(t, d)
	}
}

// swap removes the file, and writes another with the text where there is one.
func swap(t *testing.T, path, text string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if text != "" {
		rig.WriteAt(t, path, text)
	}
}

// An entry that no export writes refuses the whole archive, with a word on what to do, and leaves no directory that a
// daemon would take for its own.
func TestArchivesThatAreRefused(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}}))
	d.WantValue(d.Call(d.Session("calculator"), "add", 2, 3), 5, "generated")
	d.Stop(syscall.SIGTERM)
	good := filepath.Join(d.Dir, "good.tar.gz")
	d.Expect(0, nil, "store", "export", good)
	entries := readArchive(t, good)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := func(name, to string, kind byte) archiveEntries {
		return append(slices.Clone(entries),
			archiveEntry{Header: tar.Header{Name: name, Typeflag: kind, Linkname: to, Mode: 0o777}})
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(t *testing.T, file string){
		"a symbolic link": link("files/file_x", victim, tar.TypeSymlink).write,
		"a link for a directory": append(link("zz", filepath.Dir(victim), tar.TypeSymlink),
			archiveEntry{Header: tar.Header{Name: "zz/victim", Typeflag: tar.TypeReg}, data: []byte("lost")}).write,
		"a hard link":            link("files/file_x", "policy.json", tar.TypeLink).write,
		"a pipe":                 link("files/file_x", "", tar.TypeFifo).write,
		"a device":               link("files/file_x", "", tar.TypeChar).write,
		"a name that leads away": entries.with("../victim", "lost").write,
		"an absolute name":       entries.with(victim, "lost").write,
		"a name twice":           entries.with(entries[0].Name, "lost").write,
		"a name in another case": entries.with(path.Join(path.Dir(entries[0].Name),
			strings.ToUpper(path.Base(entries[0].Name))), "lost").write,
		"an archive that was cut": func(t *testing.T, file string) {
			rig.WriteAt(t, file,
				string(whole[:len(whole)*2/3]))
		},
		"its end cut off": func(t *testing.T, file string) {
			rig.WriteAt(t, file,
				string(whole[:len(whole)-4]))
		},
	} {
		dir := t.TempDir()
		file, into := filepath.Join(dir, "bad.tar.gz"), filepath.Join(dir, "into")
		write(t, file)
		_, errs, code := rig.Run(t, rig.Environment(dir), "store", "import", file, "--data-dir", into)
		if code != cli.ExitFailed || !strings.Contains(errs, "the archive ") ||
			!strings.Contains(errs, "export again") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
		}
		if left := rig.Files(t, dir); len(left) != 1 {
			t.Errorf("%s: left are %v", name, slices.Sorted(maps.Keys(left)))
		}
	}
	if kept, err := os.ReadFile(victim); err != nil || string(kept) != "kept" {
		t.Errorf("the file elsewhere: %q, %v", kept, err)
	}
}
