package daemon

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The unit has Type=notify, so the daemon tells when it is ready and when it stops.
func TestServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	told := func() string {
		buf := make([]byte, 64)
		_ = l.SetReadDeadline(time.Now().Add(rig.Patience))
		n, err := l.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	d := rig.Start(t, nil)
	d.Env = append(d.Env, "NOTIFY_SOCKET="+path)
	d.Restart()
	if got := told(); got != "READY=1" {
		t.Errorf("at first it tells %q", got)
	}
	if code := d.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := told(); got != "STOPPING=1" {
		t.Errorf("at last it tells %q", got)
	}
}
