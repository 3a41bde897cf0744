//go:build ops

package deploy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// checkout makes a copy of the repository as it lies here, its history included.
func checkout(t *testing.T, dir string) {
	t.Helper()
	run(t, nil, "git", "clone", "--quiet", "--no-hardlinks", "..", dir)
	// What is not committed yet is tried, too.
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z")
	list.Dir = ".."
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		info, err := os.Stat(filepath.Join("..", name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}

// dist runs make dist there and returns what SHA256SUMS says.
func dist(t *testing.T, dir string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "dist")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make dist: %v\n%s", err, out)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--quiet", "SHA256SUMS")
	check.Dir = dir + "/dist"
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("the checksums do not hold: %v\n%s", err, out)
	}
	sums, err := os.ReadFile(dir + "/dist/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	return string(sums)
}

// make dist gives the same bytes wherever and whenever it runs, and what is in an archive works.
func TestOpsDistIsReproducible(t *testing.T) {
	host := goruntime.GOOS + "/" + goruntime.GOARCH
	targets := "TARGETS=" + host + " darwin/arm64"
	if host == "darwin/arm64" {
		targets = "TARGETS=" + host + " linux/amd64"
	}
	one, two := t.TempDir()+"/a", t.TempDir()+"/another place"
	checkout(t, one)
	first := dist(t, one, targets, "TZ=UTC")
	checkout(t, two) // later: its files are newer
	second := dist(t, two, targets, "TZ=Asia/Kathmandu", "LC_ALL=C.UTF-8", "USER=somebody", "HOSTNAME=elsewhere")
	if first != second || strings.Count(first, "\n") != 2 {
		t.Errorf("the first build gives\n%sthe second\n%s", first, second)
	}

	archive := glob(t, one+"/dist/recurgentd-*-"+goruntime.GOOS+"-"+goruntime.GOARCH+".tar.gz")[0]
	into := t.TempDir()
	has := unpack(t, archive, into)
	want := []string{"recurgentd", "LICENSE", "README.md", "CHANGELOG.md", "cli.md", "modules.txt",
		"recurgentd.cdx.json", "THIRD_PARTY_LICENCES.txt", "docs/quick-start.md", "completions/recurgentd.bash",
		"completions/recurgentd.zsh",
		"completions/recurgentd.fish", "man/man1/recurgentd.1", "man/man1/recurgentd-serve.1",
		"man/man1/recurgentd-call.1"}
	if goruntime.GOOS == "linux" {
		want = append(want, "systemd/recurgentd.service")
	}
	for _, name := range want {
		if has[name] == 0 {
			t.Errorf("%s lacks %s, or it is empty", filepath.Base(archive), name)
		}
	}
	out, err := exec.CommandContext(t.Context(), into+"/recurgentd", "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "recurgentd ") || strings.Contains(string(out), " devel ") {
		t.Errorf("recurgentd version: %v\n%s", err, out)
	}
	modules, err := os.ReadFile(into + "/modules.txt")
	if err != nil || !bytes.Contains(modules, []byte("\tdep\tgithub.com/traefik/yaegi\t")) {
		t.Errorf("modules.txt: %v\n%.300s", err, modules)
	}
	for _, archive := range glob(t, one+"/dist/*.tar.gz") {
		in := t.TempDir()
		unpack(t, archive, in)
		compareBill(t, in+"/recurgentd.cdx.json", in+"/recurgentd")
	}
	binary, err := os.ReadFile(into + "/recurgentd")
	if err != nil || bytes.Contains(binary, []byte(one)) || bytes.Contains(binary, []byte(os.Getenv("HOME")+"/go")) {
		t.Errorf("the binary knows where it was built: %v", err)
	}
	for _, page := range glob(t, into+"/man/man1/*.1") {
		cmd := exec.CommandContext(t.Context(), "groff", "-man", "-Tutf8", "-ww", page)
		var text, warnings bytes.Buffer
		cmd.Stdout, cmd.Stderr = &text, &warnings
		if err := cmd.Run(); err != nil || warnings.Len() > 0 || text.Len() < 200 {
			t.Errorf("groff %s: %v, %d bytes\n%s", filepath.Base(page), err, text.Len(), warnings.String())
		}
	}
	run(t, nil, "bash", "-n", into+"/completions/recurgentd.bash")
}

// compareBill compares a bill of materials with what `go version -m` says of the binary.
func compareBill(t *testing.T, bill, binary string) {
	t.Helper()
	f, err := os.Open(bill)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(f, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, c := range *bom.Components {
		listed[c.Name+" "+c.Version] = true
	}
	out, err := exec.CommandContext(t.Context(), "go", "version", "-m", binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := 1 // the standard library
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) == 4 && fields[0] == "dep" {
			modules++
			if !listed[fields[1]+" "+fields[2]] {
				t.Errorf("the bill of materials lacks %s %s", fields[1], fields[2])
			}
		}
	}
	if len(listed) != modules || modules < 10 || !strings.Contains(string(out), bom.Metadata.Component.Version) {
		t.Errorf("the bill of materials of %s lists %d parts, the binary has %d", bom.Metadata.Component.Version,
			len(listed), modules)
	}
}

// unpack returns the sizes of an archive's files by name, and writes them into the directory. Everything is below one
// directory that bears the archive's name, belongs to nobody in particular, and has the time of the commit.
func unpack(t *testing.T, archive, into string) map[string]int64 {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	sizes, top := map[string]int64{}, strings.TrimSuffix(filepath.Base(archive), ".tar.gz")+"/"
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return sizes
		}
		if err != nil {
			t.Fatal(err)
		}
		name, below := strings.CutPrefix(h.Name, top)
		if !below || h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%s belongs to %d:%d (%s)", h.Name, h.Uid, h.Gid, h.Uname)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		path := filepath.Join(into, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, h.FileInfo().Mode().Perm()); err != nil {
			t.Fatal(err)
		}
		sizes[name] = h.Size
	}
}
