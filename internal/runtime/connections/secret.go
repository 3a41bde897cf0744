package connections

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// secret returns the connection's secret as it is now. The error names no secret, and says what to do.
func (s *Service) secret(c *agent.Connection) (string, error) {
	var secret string
	var err error
	switch a := &c.Auth; {
	case a.Env != "":
		secret, err = s.fromEnv(a.Env)
	case a.File != "":
		secret, err = s.fromFile(a.File)
	case len(a.Sealed) > 0:
		if secret, err = s.vault.open(a.Sealed, s.o.Namespace, c.Name); err != nil {
			err = fmt.Errorf("its secret cannot be opened: %w; bring the key file back, or put the connection with its secret again", err)
		}
	default:
		err = errors.New("it has no secret; put the connection with its secret again")
	}
	if err == nil {
		if why := unfit(secret); why != "" {
			err = errors.New("its secret " + why)
		} else if why := unfitAddress(c, secret); c.Auth.Type == agent.AuthURL && why != "" {
			err = errors.New("its secret " + why)
		}
	}
	return secret, err
}

// fromEnv reads a variable of a name that a connection may have, wherever the connection came from: an archive must not choose which of the daemon's own are sent away.
func (s *Service) fromEnv(name string) (string, error) {
	if !envForm().MatchString(name) {
		return "", fmt.Errorf("%.80q is no variable for a secret: its name begins with RECURGENT_SECRET_", name)
	}
	v, ok := s.o.Env(name)
	if !ok {
		return "", fmt.Errorf("the daemon's environment has no %s", name)
	}
	return trimLine(v), nil
}

// fromFile reads a file of the directory of secrets. Links are not followed: whoever may put one there must not choose which file of
// the daemon is sent away.
func (s *Service) fromFile(name string) (string, error) {
	if s.o.SecretsDir == "" {
		return "", errors.New("the daemon has no --secrets-dir")
	}
	root, err := os.OpenRoot(s.o.SecretsDir)
	if err != nil {
		return "", fmt.Errorf("--secrets-dir cannot be read: %w", err)
	}
	defer root.Close()
	named, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("--secrets-dir has no file %s", name)
	}
	if err != nil || !named.Mode().IsRegular() {
		return "", fmt.Errorf("%s in --secrets-dir is not a regular file", name)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe in its place would block
	if err != nil {
		return "", fmt.Errorf("%s in --secrets-dir cannot be read", name)
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(named, opened) { // replaced by a link meanwhile
		return "", fmt.Errorf("%s in --secrets-dir is not a regular file", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSecret+3))
	if err != nil {
		return "", fmt.Errorf("%s in --secrets-dir cannot be read", name)
	}
	return trimLine(string(data)), nil
}

// trimLine drops the end of the line that editors and echo leave.
func trimLine(s string) string { return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r") }
