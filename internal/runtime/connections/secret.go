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

// secret returns the connection's current secret. The error does not contain the secret and explains the remedy.
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
			err = fmt.Errorf("its secret cannot be decrypted: %w; restore the key file, "+
				"or set the connection again with its secret", err)
		}
	default:
		err = errors.New("it has no secret; set the connection again with its secret")
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

// fromEnv reads a secret from an environment variable. It checks the name again, because a connection may come from an
// imported archive, which must not choose other variables of the daemon to be sent.
func (s *Service) fromEnv(name string) (string, error) {
	if !envForm().MatchString(name) {
		return "", fmt.Errorf("%.80q cannot name a secret: such variables begin with RECURGENT_SECRET_", name)
	}
	v, ok := s.o.Env(name)
	if !ok {
		return "", fmt.Errorf("the daemon's environment has no %s", name)
	}
	return trimLine(v), nil
}

// fromFile reads a secret from the secrets directory. It does not follow links: whoever can create one there must not
// choose another file of the daemon to be sent.
func (s *Service) fromFile(name string) (string, error) {
	if s.o.SecretsDir == "" {
		return "", errors.New("the daemon has no --secrets-dir")
	}
	// The root keeps names from leading out of the directory.
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
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // do not block on a named pipe
	if err != nil {
		return "", fmt.Errorf("%s in --secrets-dir cannot be read", name)
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(named, opened) { // replaced in between
		return "", fmt.Errorf("%s in --secrets-dir is not a regular file", name)
	}
	// Read past maxSecret and a line end, so that a longer secret is recognized as too long.
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+3))
	if err != nil {
		return "", fmt.Errorf("%s in --secrets-dir cannot be read", name)
	}
	return trimLine(string(data)), nil
}

// trimLine removes the line end that editors and echo append.
func trimLine(s string) string { return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r") }
