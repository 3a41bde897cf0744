package logs

import (
	"bytes"
	"log"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/native/support"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// A pad is a host that collects notes.
type pad struct{ notes []string }

func (p *pad) Ask(op string, params, _ any) error {
	p.notes = append(p.notes, op+": "+params.(map[string]string)["text"])
	return nil
}

func newCall(t *testing.T, p *pad) *recurgent.Call {
	t.Helper()
	call, err := recurgent.New(recurgent.Input{}, p)
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// The default loggers write to the notes of the current call, whatever an earlier run has set.
func TestDefaultLoggers(t *testing.T) {
	first, second := &pad{}, &pad{}
	begin(newCall(t, first))
	log.Printf("%d of %d\n", 1, 2)
	slog.Warn("slow", "after", time.Second)
	log.SetFlags(log.LstdFlags)
	log.SetPrefix("p ")
	log.SetOutput(&bytes.Buffer{})
	slog.SetDefault(New(slog.DiscardHandler))
	slog.SetLogLoggerLevel(slog.LevelError)
	log.Print("elsewhere")
	begin(newCall(t, second))
	log.Print("again")
	slog.Info("again", "n", 1)
	if want := []string{"log: 1 of 2", "log: WARN slow after=1s"}; !slices.Equal(first.notes, want) {
		t.Errorf("got %q, want %q", first.notes, want)
	}
	if want := []string{"log: again", "log: INFO again n=1"}; !slices.Equal(second.notes, want) {
		t.Errorf("got %q, want %q", second.notes, want)
	}
}

// Records of other loggers have the time of the run.
func TestTimeOfRecords(t *testing.T) {
	var b bytes.Buffer
	h := slog.NewJSONHandler(&b, nil)
	New(h).WithGroup("g").With("a", 1).Info("x")
	slog.New(New(h).Handler()).Info("y")
	NewLogLogger(h, slog.LevelInfo).Print("z")
	want := `"time":"` + support.Now().Format(time.RFC3339Nano) + `"`
	if got := strings.Count(b.String(), want); got != 3 {
		t.Errorf("%d of 3 have %s: %s", got, want, b.String())
	}
	defer func() {
		if recover() == nil {
			t.Error("no handler passes")
		}
	}()
	New(nil)
}
