package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Upload sends size bytes of body as a file. It uses Name, MediaType and SessionID of f.
func (c *Client) Upload(ctx context.Context, f agent.File, body io.Reader, size int64) (agent.File, error) {
	query := url.Values{"name": {f.Name}}
	if f.SessionID != "" {
		query.Set("session_id", f.SessionID)
	}
	r, err := c.request(ctx, http.MethodPost, "/v1/files?"+query.Encode(), nil, nil)
	if err != nil {
		return agent.File{}, err
	}
	r.Body, r.ContentLength = io.NopCloser(body), size
	if size == 0 {
		r.Body = http.NoBody
	}
	r.Header.Set("Content-Type", f.MediaType)
	resp, err := c.do(r)
	if err != nil {
		return agent.File{}, err
	}
	data, err := c.read(resp, "POST /v1/files")
	if err != nil {
		return agent.File{}, err
	}
	var kept agent.File
	if err := json.Unmarshal(data, &kept); err != nil {
		return agent.File{}, fmt.Errorf("the reply of POST /v1/files is not in recurgentd's format: %w", err)
	}
	return kept, nil
}

// FilePath returns the path of a file.
func FilePath(id string) string { return "/v1/files/" + url.PathEscape(id) }
