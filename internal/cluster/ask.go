package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// maxAnswer bounds an answer to Ask, in bytes.
const maxAnswer = 8 << 20

// An Answer is what another replica said. Err is nil unless it did not answer in time and with 200.
type Answer struct {
	Replica string // its id
	Body    []byte
	Err     error
}

// Ask sends GET of the path to all other replicas, as Header says, and returns their answers by their ids. It waits for none longer than
// for a connection.
func (c *Cluster) Ask(ctx context.Context, path string, header http.Header) ([]Answer, error) {
	all, err := c.Replicas(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Dial)
	defer cancel()
	var answers []Answer
	var asked []chan Answer
	for _, r := range all {
		if r.ID == c.ID() {
			continue
		}
		answer := make(chan Answer, 1)
		asked = append(asked, answer)
		go func() {
			body, err := c.get(ctx, r.Address, path, header)
			answer <- Answer{r.ID, body, err}
		}()
	}
	for _, answer := range asked {
		answers = append(answers, <-answer) // its context ends
	}
	return answers, nil
}

// get reads what the replica at the address answers.
func (c *Cluster) get(ctx context.Context, address, path string, header http.Header) ([]byte, error) {
	if address == "" || c.peers == nil {
		return nil, fmt.Errorf("%w: replicas without --advertise cannot be asked", ErrUnreachable)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	res, err := c.peers.transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	case res.StatusCode != http.StatusOK || len(body) > maxAnswer:
		return nil, fmt.Errorf("%w: status %d and %d bytes", ErrLost, res.StatusCode, len(body))
	}
	return body, nil
}
