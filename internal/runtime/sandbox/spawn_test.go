package sandbox

import (
	"os"
	"testing"
)

// A pipe that ends before the wait begins counts as an end, too. The poller reports changes only, so the wait for a
// runner that died at once never ended.
func TestAwaitReadableSeesWhatHappenedBefore(t *testing.T) {
	for name, before := range map[string]func(w *os.File){
		"closed":  func(*os.File) {},
		"written": func(w *os.File) { _, _ = w.WriteString("x") },
	} {
		for range 200 {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			before(w)
			w.Close()
			if !awaitReadable(r) {
				t.Fatalf("%s: not readable", name)
			}
			r.Close()
		}
	}
}
