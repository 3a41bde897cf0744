package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
)

// uploaded is the result of upload_file. File is the reference to use in arguments.
type uploaded struct {
	File      json.RawMessage `json:"file"`
	Name      string          `json:"name"`
	MediaType string          `json:"media_type"`
	Bytes     int64           `json:"bytes"`
	SHA256    string          `json:"sha256"`
	SessionID *string         `json:"session_id"`
	ExpiresAt *time.Time      `json:"expires_at"`
}

// uploadFile is upload_file: it stores a file of the principal, as POST /v1/files does.
func (s *Server) uploadFile(ctx context.Context, req *sdk.CallToolRequest, arguments []byte) (sdk.Result, error) {
	var in struct {
		Name      string  `json:"name"`
		MediaType string  `json:"media_type"`
		Content   *string `json:"content"`
		Encoding  string  `json:"encoding"`
		SessionID string  `json:"session_id"`
	}
	err := decode(arguments, &in)
	if err == nil && in.Content == nil {
		err = &agent.InputError{Pointer: "/content", Detail: "is required"}
	}
	if err != nil {
		return refused(err), nil
	}
	content, err := decodeContent(*in.Content, in.Encoding)
	if err != nil {
		return refused(err), nil
	}
	session, err := sessionOf(req, in.SessionID)
	if err != nil {
		return nil, err
	}
	f := agent.File{Owner: owner(ctx), Name: in.Name, MediaType: in.MediaType, SessionID: session,
		Bytes: int64(len(content))}
	if f.MediaType == "" && in.Encoding != encodingBase64 {
		f.MediaType = "text/plain; charset=utf-8"
	}
	if f, err = s.o.Runtime.Upload(ctx, f, strings.NewReader(content)); err != nil {
		return s.refusedUpload(err)
	}
	out := uploaded{File: agent.FileRef(f.ID), Name: f.Name, MediaType: f.MediaType, Bytes: f.Bytes, SHA256: f.SHA256}
	if f.SessionID != "" {
		out.SessionID = &f.SessionID
	}
	if !f.ExpiresAt.IsZero() {
		out.ExpiresAt = &f.ExpiresAt
	}
	result := outcomeResult(agent.Encoded(out), false)
	if version(req.Session) >= firstWithLinks {
		result.Content = append(result.Content, fileLink(&f))
	}
	return result, nil
}

// Encodings of an uploaded content.
const (
	encodingText   = "text"
	encodingBase64 = "base64"
)

// decodeContent returns the bytes of a content. Base64 may contain white space and lack its padding.
func decodeContent(content, encoding string) (string, error) {
	switch encoding {
	case "", encodingText:
		return content, nil
	case encodingBase64:
		bare := strings.TrimRight(strings.Map(func(r rune) rune {
			if strings.ContainsRune(" \t\r\n", r) {
				return -1
			}
			return r
		}, content), "=")
		data, err := base64.RawStdEncoding.DecodeString(bare)
		if err != nil {
			return "", &agent.InputError{Pointer: "/content", Detail: "is not base64: " + err.Error(),
				Hint: "leave encoding out for text"}
		}
		return string(data), nil
	}
	return "", &agent.InputError{Pointer: "/encoding", Detail: "must be " + encodingText + " or " + encodingBase64}
}

// refusedUpload returns the result for a file that the daemon does not accept.
func (s *Server) refusedUpload(err error) (sdk.Result, error) {
	var limit *files.LimitError
	var full *storage.FullError
	var bad *agent.InputError
	switch {
	case errors.As(err, &bad): // the only other argument that can be invalid is the media type
		return refused(&agent.InputError{Pointer: "/media_type", Detail: bad.Detail, Hint: bad.Hint}), nil
	case errors.As(err, &limit):
		return refused(limit), nil
	case errors.As(err, &full):
		return refused(errors.New("there is no room for " + full.Error() + ". " + full.Hint())), nil
	}
	return s.refusedBy(err, "there is no session of yours with that id")
}
