package tools

import (
	"archive/zip"
	"fmt"
	"hash/fnv"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// progZones digests when the clocks of zones change in fifty years, and to what.
var progZones = "package tool\n\nimport (\n\t\"fmt\"\n\t\"hash/fnv\"\n\t\"recurgent\"\n\t\"time\"\n)\n\n" + zoneDigest +
	`
func Run(call *recurgent.Call) (any, error) {
	out := map[string]any{}
	for _, name := range call.Args[0].([]any) {
		zone, err := time.LoadLocation(name.(string))
		if err != nil {
			return nil, err
		}
		out[name.(string)] = digest(zone)
	}
	return out, nil
}
`

const zoneDigest = `
func digest(zone *time.Location) string {
	h := fnv.New64a()
	last := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
	for at := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC).In(zone); at.Before(last); {
		name, offset := at.Zone()
		fmt.Fprintln(h, at.Unix(), name, offset)
		_, end := at.ZoneBounds()
		if !end.After(at) {
			break
		}
		at = end
	}
	return fmt.Sprint(h.Sum64())
}
`

// digest is what programs compute by zoneDigest.
func digest(zone *time.Location) string {
	h := fnv.New64a()
	last := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
	for at := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC).In(zone); at.Before(last); {
		name, offset := at.Zone()
		fmt.Fprintln(h, at.Unix(), name, offset)
		_, end := at.ZoneBounds()
		if !end.After(at) {
			break
		}
		at = end
	}
	return fmt.Sprint(h.Sum64())
}

// Programs know every time zone, though they find no file, as the toolchain knows it.
func TestZones(t *testing.T) {
	t.Parallel()
	want := map[string]any{}
	var names []any
	for name, data := range toolchainZones(t) {
		zone, err := time.LoadLocationFromTZData(name, data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		names, want[name] = append(names, name), digest(zone)
	}
	if len(names) < 400 || want["Europe/Berlin"] == want["UTC"] {
		t.Fatalf("the toolchain has %d zones", len(names))
	}
	m := rig.NewModel(t, rig.Script{"clock.zones": {progZones},
		"clock.unknown": {rig.Program(
			"\t_, err := time.LoadLocation(\"Europe/Nowhere\")\n\treturn fmt.Sprint(err), nil", "fmt", "time")}})
	d := rig.Start(t, m)
	s := d.Session("clock")
	got := d.Call(s, "zones", names)
	value, _ := got.Outcome.Value.(object)
	if len(value) != len(want) {
		t.Fatalf("got %+v", got.Outcome)
	}
	for name := range want {
		if value[name] != want[name] {
			t.Errorf("%s is another zone in programs", name)
		}
	}
	if got := d.Call(s, "unknown"); !strings.Contains(fmt.Sprint(got.Outcome.Value),
		"unknown time zone Europe/Nowhere") {
		t.Errorf("a zone that does not exist: %+v", got.Outcome)
	}
}

// toolchainZones are the zones that the toolchain carries.
func toolchainZones(t *testing.T) map[string][]byte {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	out := map[string][]byte{}
	for _, f := range archive.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if out[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	return out
}
