package app

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
)

// openFetch returns what performs the fetches of programs.
func (a *App) openFetch(o Options) (*fetch.Client, error) {
	fo := fetch.DefaultOptions()
	fo.MaxBody = int(o.FetchMax)
	t, err := fetch.NewTransport(fetch.TransportOptions{Allow: o.FetchAllow, Timeout: fo.Timeout})
	if err != nil {
		return nil, err
	}
	a.onStop("the fetches", func(context.Context) error {
		t.Close()
		return nil
	})
	return fetch.New(t, fo), nil
}

// hostPattern reports whether the text is host, host:port or *.domain.
func hostPattern(text string) bool {
	host := text
	if h, port, err := net.SplitHostPort(text); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
		host = h
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return a.Zone() == ""
	}
	host = strings.TrimPrefix(host, "*.")
	if host == "" || len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return false
		}
	}
	return true
}
