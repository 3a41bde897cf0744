//go:build linux && !race

package daemon

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// rows generates a CSV of at least size bytes without holding it, and what the sums of its second column are.
type rows struct {
	left int64
	n    int
	buf  bytes.Buffer
	sums map[string]float64
}

func newRows(size int64) *rows {
	r := &rows{left: size, sums: map[string]float64{}}
	r.buf.WriteString("region,units,customer,note\n")
	return r
}

func (r *rows) Read(p []byte) (int, error) {
	for r.buf.Len() < len(p) && r.left > 0 {
		from := r.buf.Len()
		region, units := []string{"north", "south", "east", "west"}[r.n%4], r.n%100
		fmt.Fprintf(&r.buf, "%s,%d,customer-%07d,%s\n", region, units, r.n, "a note of some words that nobody reads")
		r.sums[region] += float64(units)
		r.left -= int64(r.buf.Len() - from)
		r.n++
	}
	return r.buf.Read(p)
}

// peak is the most memory that the process has had resident, in bytes.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// resetPeak has the peak begin at what is resident now.
func resetPeak(t *testing.T, pid int) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

// progUpper copies a file in upper case.
var progUpper = rig.Program(`	in, err := call.Open(call.Arg(0, "sales"))
	if err != nil {
		return nil, err
	}
	out, err := call.Create("upper.csv", "text/csv")
	if err != nil {
		return nil, err
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		if _, err := out.Write(bytes.ToUpper(buf[:n])); err != nil {
			return nil, err
		}
		if err == io.EOF {
			return out.Ref(), nil
		}
		if err != nil {
			return nil, err
		}
	}`, "bytes", "io")

// 200 MB come in, are grouped by a program within a runner's memory, come out again, and the daemon's memory stays as
// it was.
func TestLargeFile(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a file of the greatest size")
	}
	t.Parallel()
	const size = 200 << 20
	d := rig.Start(t, rig.NewModel(t, rig.Script{"sales.total": {progSums}, "sales.upper": {progUpper}}),
		"--call-timeout", "10m")
	d.HTTP = &http.Client{} // the checker of exchanges holds bodies, and a busy machine takes its time
	s := d.Session("sales")
	warm := d.Call(s, "total", ref(upload(d, http.StatusCreated, "", "text/csv", whole(t, newRows(1<<10)))))
	if !warm.Outcome.OK {
		t.Fatalf("got %+v", warm.Outcome)
	}
	pid := d.Cmd.Process.Pid
	resetPeak(t, pid)
	before := peak(t, pid)

	body := newRows(size)
	began := time.Now()
	req, err := http.NewRequest(http.MethodPost, d.URL+"/v1/files?name=sales.csv", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/csv")
	resp, err := d.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("status %d: %s", resp.StatusCode, text)
	}
	f := rig.Response{Body: text}.Object(t)
	uploaded := time.Now()
	want := map[string]any{}
	for k, v := range body.sums {
		want[k] = v
	}
	d.WantValue(d.Call(s, "total", ref(f)), want, "persisted")
	grouped := time.Now()

	got := d.Call(s, "upper", ref(f))
	made, _ := got.Outcome.Value.(map[string]any)
	if !got.Outcome.OK || made["$file"] == nil {
		t.Fatalf("got %+v", got.Outcome)
	}
	copied := time.Now()
	resp, err = d.HTTP.Get(d.URL + "/v1/files/" + made["$file"].(string) + "/content")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines, compare := bufio.NewReaderSize(resp.Body, 1<<20), bufio.NewReaderSize(newRows(size), 1<<20)
	for n := 0; ; n++ {
		a, errA := lines.ReadSlice('\n')
		b, errB := compare.ReadSlice('\n')
		if errA != errB || !bytes.Equal(a, bytes.ToUpper(b)) {
			t.Fatalf("line %d: got %q, %v, want %q, %v", n, a, errA, bytes.ToUpper(b), errB)
		}
		if errA == io.EOF {
			break
		}
	}
	grown := peak(t, pid) - before
	t.Logf("%d MB: uploaded in %s, grouped (%d rows) in %s, copied in %s, downloaded in %s; the daemon's peak grew by %.1f MiB from %.1f",
		size>>20, uploaded.Sub(began).Round(time.Millisecond), body.n, grouped.Sub(uploaded).Round(time.Millisecond),
		copied.Sub(grouped).Round(time.Millisecond),
		time.Since(copied).Round(time.Millisecond), float64(grown)/(1<<20), float64(before)/(1<<20))
	most := int64(32 << 20)
	if rig.Store(t) != "disk" {
		most = 96 << 20 // what pieces leave behind, before it is collected
	}
	if grown > most {
		t.Errorf("the daemon's peak memory grew by %d bytes, at most %d may be", grown, most)
	}
}

func whole(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
