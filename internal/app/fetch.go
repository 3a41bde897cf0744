package app

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/runtime/fetch"
)

// openFetch returns what performs the fetches of programs.
func (a *App) openFetch(o Options) (*fetch.Client, error) {
	fo := fetch.DefaultOptions()
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
