package sandbox

import (
	"os"
	"testing"
)

// A pipe that ends before anybody waits for it is an end too: the poller reports changes only, and a runner that died
// at once was waited for without end.
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
