package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel is what notifications are sent on.
const channel = "recurgentd_feed"

// notifyEvery bounds how often this replica notifies the others. Nobody waits for the disks meanwhile: what is lost with the server is a hint.
const (
	notifyEvery = 20 * time.Millisecond
	sendHint    = "SELECT set_config('synchronous_commit', 'off', true), pg_notify('" + channel + "', '')"
)

// hint says that the feed has something new.
func (s *Store) hint() {
	s.bell.Ring()
	select {
	case s.hints <- struct{}{}:
	default:
	}
}

// notify reports hints to other replicas, until ctx ends. It does so beside the transactions that made the changes: one that notifies waits for
// every other one that does.
func (s *Store) notify(ctx context.Context) {
	pause := time.NewTicker(notifyEvery)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.hints:
			_ = s.read(ctx, func(ctx context.Context) error {
				_, err := s.pool.Exec(ctx, sendHint)
				return err
			}) // others poll
		}
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// listen rings the bell when another replica notifies, until ctx ends. Where it cannot, polling finds what is new.
func (s *Store) listen(ctx context.Context, config *pgx.ConnConfig) {
	for ctx.Err() == nil {
		if err := s.listenOnce(ctx, config); err != nil && ctx.Err() == nil {
			s.o.Logger.Debug().Err(err).Msg("no notifications of other replicas; the change feed is polled")
		}
		select {
		case <-ctx.Done():
		case <-time.After(pingEvery):
		}
	}
}

func (s *Store) listenOnce(ctx context.Context, config *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // nothing is left to be sent
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
		s.bell.Ring()
	}
}
