package disk

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// packed returns an archive of the files, as an export writes it. change may add entries and change the list. Checksums
// are correct.
func packed(t testing.TB, files map[string][]byte, change func(w *tar.Writer, list map[string]string)) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	list := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		addFile(t, w, list, name, files[name])
	}
	if change != nil {
		change(w, list)
	}
	text, err := json.Marshal(manifest{SchemaVersion: agent.SchemaVersion, Files: list})
	if err != nil {
		t.Fatal(err)
	}
	addFile(t, w, map[string]string{}, manifestFile, text)
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func addFile(t testing.TB, w *tar.Writer, list map[string]string, name string, data []byte) {
	t.Helper()
	err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(data)), Mode: 0o777})
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	list[name] = hex.EncodeToString(sum[:])
}

// exportOf returns a store with three namespaces, and the files of an export of it.
func exportOf(t *testing.T) (dir string, files map[string][]byte) {
	t.Helper()
	dir = t.TempDir()
	s := threeSpaces(t, dir)
	var archive bytes.Buffer
	if err := errors.Join(s.Export(t.Context(), &archive, ""), s.close()); err != nil {
		t.Fatal(err)
	}
	files = inArchive(t, archive.Bytes())
	delete(files, manifestFile)
	return dir, files
}

// planted holds files that an archive may contain and no import accepts, by reason.
var planted = map[string][]string{
	leftDerived: {"native/cache/packages-go1.26.8/support.a", "native/cache/exe/0000", "native/verdicts/x.json",
		"native/installation.key", "native/x/y/z", "tools/index.json", "ns/acme/tools/index.json",
		"calls/00000007.idx", "ns/acme/values/00000001.idx", "lock", "tmp/1", "ns/acme/tmp/1"},
	leftKey: {"secrets.key"},
	leftAside: {"tools/calculator/add.json.corrupt-20260101T000000.000Z-1",
		"journal/00000000000000000001.wal.corrupt-x", "backup/policy.json.v0-x", "ns/acme/backup/x"},
	leftUnknown: {"anything/else", "unfinished", "recurgentd", "ns/acme/secrets.key", "ns/acme/native/cache/exe/x",
		"ns/UPPER/policy.json", "ns/default/policy.json", "ns/acme.erased/policy.json", "ns/acme/ns/beta/policy.json",
		"ns/acme/journal/00000000000000000001.wal", "ns/acme/journal/checkpoint.json", "programs/x.go",
		"programs/a/b.go", "files/a/b", "files/.hidden", "files/a.so", "sessions/sess_1/other.json",
		"tools/Upper/add.json", "tools/calculator/add.json.exe",
		"journal/1.wal", "values/1.jsonl", "calls.jsonl.exe", "policy.json.d/x", ".ssh/authorized_keys"},
	leftForm: {"tools/evil/evil.json", "tools/archive/evil/evil.20260101T000000.000Z-1.json",
		"tools/archive/registry/evil.20260101T000000.000Z-1.json", "programs/" + strings.Repeat("0", 64) + ".go",
		"programs/unreferenced.json",
		"sessions/sess_evil/session.json", "sessions/sess_evil/history.jsonl", "calls/00000099.jsonl",
		"values/00000099.jsonl", "tools/archive/x.json", "journal/00000000000000009999.wal"},
}

// An import accepts only primary files of known kinds, even if other files have correct checksums, and reports what it
// left out. The accepted files equal those of the export.
func TestImportTakesPrimaryFilesAlone(t *testing.T) {
	t.Parallel()
	dir, files := exportOf(t)
	for name := range files {
		if k, _, _ := kindOf(name); k == nil {
			t.Errorf("an export holds %s, which is of no kind", name)
		}
	}
	for name := range tree(t, dir) {
		if k, _, _ := kindOf(name); k == nil && whyLeft(name) != leftDerived {
			t.Errorf("the store has %s, which is neither of a kind nor made anew", name)
		}
	}
	all, want := maps.Clone(files), map[string][]string{}
	for why, names := range planted {
		for _, name := range names {
			all[name] = []byte("planted")
			want[why] = append(want[why], name)
		}
	}
	archive := packed(t, all, func(w *tar.Writer, _ map[string]string) {
		if err := w.WriteHeader(&tar.Header{Name: "empty/", Typeflag: tar.TypeDir, Mode: 0o777}); err != nil {
			t.Fatal(err)
		}
	})
	into := filepath.Join(t.TempDir(), "new")
	in, err := Import(t.Context(), into, bytes.NewReader(archive), testOptions(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range in.LeftOut {
		if l.Files != len(want[l.Why]) {
			t.Errorf("%s: %d files are left out (%v), want %v", l.Why, l.Files, l.Names, want[l.Why])
		}
		delete(want, l.Why)
	}
	if len(want) > 0 {
		t.Errorf("not said to be left out: %v", want)
	}
	for name, text := range tree(t, into) {
		if k, _, _ := kindOf(name); strings.Contains(text, "planted") || k == nil && name != lockFile &&
			whyLeft(name) != leftDerived {
			t.Errorf("%s was taken: %.40q", name, text)
		}
	}
	for _, name := range spacesOfExports {
		if got, want := itemsOf(t, into, name), itemsOf(t, dir, name); got != want {
			t.Errorf("%s is not what it was: %s", name, storetest.Difference(got, want))
		}
	}
}

// An archive with content that no export writes is refused, and nothing of it is kept. The error names a remedy.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{policyFile: fmt.Appendf(nil, `{"schema_version":1,"policy":%s}`,
		agent.Encoded(agent.DefaultPolicy())), "files/file_1": []byte("bytes")}
	entry := func(h tar.Header) func(*tar.Writer, map[string]string) {
		return func(w *tar.Writer, list map[string]string) {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			list[h.Name] = hex.EncodeToString(sha256.New().Sum(nil))
		}
	}
	file := func(name string) func(*tar.Writer, map[string]string) {
		return func(w *tar.Writer, list map[string]string) { addFile(t, w, list, name, []byte("x")) }
	}
	whole := packed(t, files, nil)
	for name, archive := range map[string][]byte{
		"a symbolic link": packed(t, files,
			entry(tar.Header{Name: "files/link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})),
		"a hard link": packed(t, files,
			entry(tar.Header{Name: "files/link", Typeflag: tar.TypeLink, Linkname: "policy.json"})),
		"a pipe": packed(t, files, entry(tar.Header{Name: "files/pipe", Typeflag: tar.TypeFifo})),
		"a device": packed(t, files,
			entry(tar.Header{Name: "files/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3})),
		"a file with holes": withHoles(t, files),
		"a linked directory": packed(t, files,
			entry(tar.Header{Name: "zz", Typeflag: tar.TypeSymlink, Linkname: "/tmp"})),
		"an absolute name":   packed(t, files, file("/tmp/x")),
		"a name upwards":     packed(t, files, file("../x")),
		"a name up and down": packed(t, files, file("files/../../x")),
		"a name twice over":  packed(t, files, file("files//x")),
		"a backslash":        packed(t, files, file(`files\x`)),
		"an empty name":      packed(t, files, file("a/./b")),
		"a long name":        packed(t, files, file("files/"+strings.Repeat("x", maxName))),
		"the same name":      packed(t, files, file("policy.json")),
		"another case":       packed(t, files, file("Policy.json")),
		"not in the list": packed(t, files, func(_ *tar.Writer,
			list map[string]string) {
			delete(list, "policy.json")
		}),
		"not in the archive": packed(t, files, func(_ *tar.Writer,
			list map[string]string) {
			list["spend2.json"] = strings.Repeat("0", 64)
		}),
		"another checksum": packed(t, files, func(_ *tar.Writer,
			list map[string]string) {
			list["policy.json"] = strings.Repeat("0", 64)
		}),
		"a list too long": packed(t, nil, func(_ *tar.Writer,
			list map[string]string) {
			list[strings.Repeat("x", 1<<17)] = ""
		}),
		"something behind it":  append(bytes.Clone(whole), packed(t, nil, nil)...),
		"zeros behind it":      append(bytes.Clone(whole), zipped(t, make([]byte, 2<<20))...),
		"rubbish behind it":    append(bytes.Clone(whole), "rubbish"...),
		"a list of what comes": listFirst(t),
		"its last byte gone":   whole[:len(whole)-1],
		"half of it":           whole[:len(whole)/2],
		"one byte":             whole[:1],
		"nothing":              nil,
		"no archive":           []byte("hello"),
		"a flipped bit":        flipped(whole),
	} {
		into := filepath.Join(t.TempDir(), "bad")
		_, err := Import(t.Context(), into, bytes.NewReader(archive), testOptions(t), nil)
		if refused, is := errors.AsType[*ArchiveError](err); !is || refused.Do == "" {
			t.Errorf("%s: got %v, want an ArchiveError", name, err)
		}
		if left := tree(t, into); len(left) > 0 {
			t.Errorf("%s: %d files are left", name, len(left))
		}
	}
}

// withHoles returns an archive with a file of one byte that claims to be longer. Package tar's writer cannot make such
// a file, so its records are renamed.
func withHoles(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	whole := unzipped(t, packed(t, files, func(w *tar.Writer, list map[string]string) {
		err := w.WriteHeader(&tar.Header{Name: "files/holes", Typeflag: tar.TypeReg, Size: 1, Format: tar.FormatPAX,
			PAXRecords: map[string]string{"GNU_sparse.major": "0", "GNU_sparse.minor": "1", "GNU_sparse.numblocks": "1",
				"GNU_sparse.map": "0,1", "GNU_sparse.size": "1000"}})
		if err == nil {
			_, err = w.Write([]byte("x"))
		}
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(append([]byte("x"), make([]byte, 999)...))
		list["files/holes"] = hex.EncodeToString(sum[:])
	}))
	return zipped(t, bytes.ReplaceAll(whole, []byte("GNU_sparse"), []byte("GNU.sparse")))
}

func unzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if _, err := zip.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// listFirst returns an archive with a file after its list.
func listFirst(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	addFile(t, w, map[string]string{}, manifestFile, []byte(`{"schema_version":1,"files":{}}`))
	addFile(t, w, map[string]string{}, "policy.json", []byte(`{}`))
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func flipped(data []byte) []byte {
	out := bytes.Clone(data)
	out[len(out)/2] ^= 1
	return out
}

// A file larger than the disk or than its kind allows is refused on the basis of its header.
func TestImportOfGreatFiles(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int64{"files/file_1": 1 << 60, "policy.json": 1 << 40,
		"anything/else": 1 << 60} {
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		if err := tar.NewWriter(zip).WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg,
			Size: size}); err != nil {
			t.Fatal(err)
		}
		if err := zip.Close(); err != nil {
			t.Fatal(err)
		}
		into := filepath.Join(t.TempDir(), "bad")
		_, err := Import(t.Context(), into, &out, testOptions(t), nil)
		if _, is := errors.AsType[*ArchiveError](err); !is || !strings.Contains(err.Error(), fmt.Sprint(size)) &&
			name == "files/file_1" {
			t.Errorf("%s of %d bytes: got %v", name, size, err)
		}
	}
}

// A document of a newer version makes the import fail. Documents from before versions existed are accepted.
func TestImportOfOtherVersions(t *testing.T) {
	t.Parallel()
	_, files := exportOf(t)
	for _, name := range []string{"policy.json", "tools/calculator/add.json", "sessions/sess_1/session.json",
		"ns/acme/files.json", "journal/checkpoint.json"} {
		changed := maps.Clone(files)
		changed[name] = bytes.Replace(files[name], []byte(`"schema_version": `), []byte(`"schema_version": 9`), 1)
		into := filepath.Join(t.TempDir(), "newer")
		_, err := Import(t.Context(), into, bytes.NewReader(packed(t, changed, nil)), testOptions(t), nil)
		if newer, is := errors.AsType[*newerError](err); !is || newer.name != name {
			t.Errorf("%s: got %v", name, err)
		}
		if left := tree(t, into); len(left) > 0 {
			t.Errorf("%s: %d files are left", name, len(left))
		}
	}
	code := "package tool // old"
	seed := map[string][]byte{"tools/web_fetcher/fetch.json": fmt.Appendf(nil,
		`{"role":"web_fetcher","method_name":"fetch","code_checksum":%q,"code":%q,"dependencies":[],"created_at":"2026-02-15T00:00:00Z","history":[{"id":"gen-3"}]}`, agent.Checksum(code), code)}
	into := filepath.Join(t.TempDir(), "seed")
	if in, err := Import(t.Context(), into, bytes.NewReader(packed(t, seed, nil)), testOptions(t),
		nil); err != nil || len(in.LeftOut) > 0 {
		t.Fatalf("left out %v, %v", in.LeftOut, err)
	}
	if a, err := open(t, into, testOptions(t)).Artifact(t.Context(), "web_fetcher",
		"fetch"); err != nil || a.Current() == nil || a.Current().Code != code {
		t.Errorf("got %+v, %v", a, err)
	}
}

// Names and ids in documents and entries cannot refer to other files below the directory.
func TestImportedNamesLeadNowhere(t *testing.T) {
	t.Parallel()
	_, files := exportOf(t)
	change := func(name, from, to string) {
		if !bytes.Contains(files[name], []byte(from)) {
			t.Fatalf("%s has no %s", name, from)
		}
		files[name] = bytes.Replace(files[name], []byte(from), []byte(to), 1)
	}
	change("files.json", `"file_default"`, `"../policy.json"`)
	change("ns/beta/files.json", `"file_beta"`, `"../../../policy.json"`)
	change("journal/checkpoint.json", `"sessions": `, `"unarchived": ["../../policy.json"], "sessions": `)
	into := filepath.Join(t.TempDir(), "new")
	in, err := Import(t.Context(), into, bytes.NewReader(packed(t, files, nil)), testOptions(t), nil)
	if err != nil || len(in.LeftOut) != 1 || in.LeftOut[0].Why != leftForm || in.LeftOut[0].Files != 3 {
		t.Errorf("left out %+v, %v", in.LeftOut, err)
	}
	for _, entry := range []string{
		`{"t":1,"files":[{"id":"../policy.json"}]}`, `{"t":1,"files_gone":["../policy.json"]}`,
		`{"t":1,"delete":[".."]}`, `{"t":1,"s":"..","create":{"session":{"id":".."}}}`, `{"t":1,"s":"../x","r":{}}`,
		`{"t":1,"erase_namespace":"../sessions"}`, `{"t":1,"create_namespace":"a/b"}`,
		`{"t":1,"move":{"kind":"restore","files":["../policy.json"]}}`,
		`{"t":1,"move":{"kind":"restore","files":["tools/archive/../../policy.json"]}}`,
		`{"t":1,"move":{"kind":"archive","stamp":"../../x"}}`,
	} {
		if _, err := decodeEntry([]byte(entry)); err == nil {
			t.Errorf("accepted: %s", entry)
		}
	}
}

// Sealed secrets are imported without their key, and the import counts them.
func TestImportCountsSealedSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, testOptions(t))
	if _, err := s.PutConnection(t.Context(), agent.Connection{Name: "weather",
		Auth: agent.ConnectionAuth{Type: "bearer", Sealed: []byte("sealed")}}, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secrets.key"), []byte("AGE-SECRET-KEY-1"), 0o600); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := s.Export(t.Context(), &archive, ""); err != nil {
		t.Fatal(err)
	}
	if in, err := Import(t.Context(), filepath.Join(t.TempDir(), "new"), bytes.NewReader(archive.Bytes()),
		testOptions(t), nil); err != nil || in.Sealed != 1 || len(in.LeftOut) > 0 {
		t.Errorf("got %+v, %v", in, err)
	}
	for name, data := range inArchive(t, archive.Bytes()) {
		if strings.Contains(name, "key") || bytes.Contains(data, []byte("AGE-SECRET")) {
			t.Errorf("the export holds %s", name)
		}
	}
}

// FuzzImport imports an archive of any files with a correct list. It must not panic. A refused archive leaves nothing;
// an accepted one has only files of known kinds and opens.
func FuzzImport(f *testing.F) {
	base := vfstest.New()
	s, err := openStore(f, "sim", simOptions(f, base, func() time.Time { return simStart }))
	if err != nil {
		f.Fatal(err)
	}
	fillStore(f, s)
	if err := s.close(); err != nil {
		f.Fatal(err)
	}
	seeds := map[string][]byte{"secrets.key": []byte("key"), "native/x": nil, "../x": nil}
	for _, name := range fuzzNames {
		if data, err := base.ReadFile(name); err == nil {
			seeds[name] = data
		}
	}
	names := slices.Sorted(maps.Keys(seeds))
	for i, name := range names {
		f.Add(name, seeds[name], names[(i+1)%len(names)], seeds[names[(i+1)%len(names)]])
		f.Add("ns/acme/"+name, seeds[name], name, []byte(`{"schema_version":1}`))
	}
	f.Fuzz(func(t *testing.T, first string, one []byte, second string, two []byte) {
		importAny(t, packedAny(t, first, one, second, two))
	})
}

// FuzzImportBytes does the same with any bytes in place of an archive.
func FuzzImportBytes(f *testing.F) {
	files := map[string][]byte{policyFile: fmt.Appendf(nil, `{"schema_version":1,"policy":%s}`,
		agent.Encoded(agent.DefaultPolicy())), "files/file_1": []byte("bytes"), "secrets.key": []byte("key")}
	for _, h := range []tar.Header{{Name: "files/x", Typeflag: tar.TypeSymlink, Linkname: "/tmp"},
		{Name: "files/y", Typeflag: tar.TypeLink, Linkname: "policy.json"}, {Name: "native/", Typeflag: tar.TypeDir},
		{Name: "files/" + strings.Repeat("z", 200), Typeflag: tar.TypeReg,
			PAXRecords: map[string]string{"RECURGENT.x": "y"}}} {
		f.Add(unzipped(f, packed(f, files, func(w *tar.Writer, list map[string]string) {
			if err := w.WriteHeader(&h); err != nil {
				f.Fatal(err)
			}
			list[h.Name] = hex.EncodeToString(sha256.New().Sum(nil))
		})))
	}
	f.Add(unzipped(f, packed(f, files, nil)))
	f.Fuzz(func(t *testing.T, archive []byte) { importAny(t, zipped(t, summed(archive))) })
}

// summed corrects the checksum in each header, so modified headers are read.
func summed(archive []byte) []byte {
	archive = bytes.Clone(archive)
	for block := range slices.Chunk(archive, 512) {
		if len(block) < 512 || string(block[257:262]) != "ustar" {
			continue
		}
		copy(block[148:156], "        ")
		sum := 0
		for _, c := range block {
			sum += int(c)
		}
		copy(block[148:156], fmt.Sprintf("%06o\x00 ", sum))
	}
	return archive
}

// importAny imports an archive. The directory must then be empty, or be a store that opens and has no other files.
func importAny(t *testing.T, archive []byte) {
	t.Helper()
	sim := vfstest.New()
	o := simOptions(t, sim, func() time.Time { return simStart })
	_, err := Import(t.Context(), "sim", bytes.NewReader(archive), o, nil)
	left := strings.Split(sim.Text(), "\n")
	if err != nil {
		if sim.Text() != "" {
			t.Fatalf("%v: left %v", err, left)
		}
		return
	}
	for _, line := range left {
		name := line[:strings.LastIndex(line, " ")]
		if k, _, _ := kindOf(name); k == nil && (whyLeft(name) != leftDerived ||
			strings.HasPrefix(name, store.DerivedDir)) && !isCorruptName(name) && !strings.Contains(name, "backup/") {
			t.Fatalf("took %s", name)
		}
	}
	again, err := Open("sim", o)
	if err != nil {
		t.Fatal(err)
	}
	again.kill()
}

// fuzzNames has a file name of each kind.
var fuzzNames = []string{registryFile, policyFile, patternsFile, contentFile, evidenceFile, filesFile, connectionsFile,
	spendFile, checkpointFile, auditFile, callLogFile, "values/00000001.jsonl", "tools/calculator/add.json",
	"sessions/sess_1/session.json", "sessions/sess_1/history.jsonl", "journal/00000000000000000040.wal"}

// packedAny is packed for names that may not be valid in an archive.
func packedAny(t *testing.T, first string, one []byte, second string, two []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	list := map[string]string{}
	for _, f := range []struct {
		name string
		data []byte
	}{{first, one}, {second, two}} {
		if w.WriteHeader(&tar.Header{Name: f.name, Typeflag: tar.TypeReg, Size: int64(len(f.data))}) != nil {
			t.Skip("no name in an archive")
		}
		if _, err := w.Write(f.data); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(f.data)
		list[f.name] = hex.EncodeToString(sum[:])
	}
	text, err := json.Marshal(manifest{SchemaVersion: agent.SchemaVersion, Files: list})
	if err != nil {
		t.Fatal(err)
	}
	addFile(t, w, map[string]string{}, manifestFile, text)
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
