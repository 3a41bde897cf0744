package cli

import (
	"net"
	"time"
)

// notify tells the service manager that started the daemon of its state (sd_notify(3)), where one wants to know. That it
// cannot be told is no reason to stop: it has its own time limit.
func notify(env func(string) (string, bool), state string) {
	path, _ := env("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}) // a leading @ is the abstract namespace
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Write([]byte(state))
}
