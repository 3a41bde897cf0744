package daemon

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The unit has Type=notify, so the daemon reports when it is ready and when it stops.
func TestServiceManagerIsNotified(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	message := func() string {
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
	if got := message(); got != "READY=1" {
		t.Errorf("the first message is %q", got)
	}
	if code := d.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := message(); got != "STOPPING=1" {
		t.Errorf("the last message is %q", got)
	}
}
