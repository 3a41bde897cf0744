package connections

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"filippo.io/age"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/beneath"
)

// ErrNoKey, ErrWrongKey and ErrBadKey are the errors of a vault.
var (
	ErrNoKey    = errors.New("the key file is missing")
	ErrWrongKey = errors.New("the key file does not match")
	ErrBadKey   = errors.New("the key file cannot be used")
)

// A vault encrypts secrets to the first identity in a key file (filippo.io/age) and decrypts them. It reads the file at
// each use.
type vault struct {
	path   string
	strict bool       // the file is in a data directory, so links are not followed
	making sync.Mutex // held while the file is created
}

// sealed is the plaintext of a sealed secret. It includes the names so that a ciphertext copied to another connection
// is rejected.
type sealed struct {
	Namespace  agent.Namespace `json:"namespace"`
	Connection string          `json:"connection"`
	Secret     string          `json:"secret"`
}

// seal encrypts to the first identity of the key file, and creates the file if it is missing.
func (v *vault) seal(s sealed) ([]byte, error) {
	keys, err := v.keys()
	if errors.Is(err, ErrNoKey) {
		keys, err = v.make()
	}
	if err != nil {
		return nil, err
	}
	own, ok := keys[0].(*age.X25519Identity)
	if !ok {
		return nil, fmt.Errorf("%w: its first identity is not an AGE-SECRET-KEY-1", ErrBadKey)
	}
	plain, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, own.Recipient())
	if err != nil {
		return nil, err
	}
	_, err = w.Write(plain)
	if err = errors.Join(err, w.Close()); err != nil { // Close writes the last chunk
		return nil, err
	}
	return out.Bytes(), nil
}

// open decrypts a secret sealed for the connection.
func (v *vault) open(data []byte, namespace agent.Namespace, connection string) (string, error) {
	keys, err := v.keys()
	if err != nil {
		return "", err
	}
	r, err := age.Decrypt(bytes.NewReader(data), keys...)
	if err != nil {
		return "", ErrWrongKey
	}
	plain, err := io.ReadAll(io.LimitReader(r, 2*maxSecret))
	if err != nil {
		return "", ErrWrongKey
	}
	var s sealed
	if json.Unmarshal(plain, &s) != nil || s.Namespace != namespace || s.Connection != connection {
		return "", errors.New("it was encrypted for another connection")
	}
	return s.Secret, nil
}

// keys reads the identities of the key file. It returns ErrNoKey if the file is missing and ErrBadKey if it is
// unusable.
func (v *vault) keys() ([]age.Identity, error) {
	data, err := v.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoKey
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	keys, err := age.ParseIdentities(bytes.NewReader(data))
	if err != nil || len(keys) == 0 {
		return nil, fmt.Errorf("%w: %s holds no age identity", ErrBadKey, v.path)
	}
	return keys, nil
}

// read reads the key file. It may be a link, as in secrets mounted by an orchestrator, but not in a data directory.
func (v *vault) read() ([]byte, error) {
	if v.strict {
		dir, err := beneath.Open(filepath.Dir(v.path))
		if err != nil {
			return nil, err
		}
		defer func() { _ = dir.Close() }() // opened for reading only
		return dir.ReadFile(filepath.Base(v.path))
	}
	f, err := os.OpenFile(v.path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // do not block on a named pipe
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a regular file", v.path), err)
	}
	return io.ReadAll(io.LimitReader(f, maxKeyFile))
}

// maxKeyFile bounds the part of a key file that is read, in bytes.
const maxKeyFile = 1 << 20

// make creates the key file with mode 0600, atomically. It returns once the file is on disk, so no secret is stored
// before its key.
func (v *vault) make() ([]age.Identity, error) {
	v.making.Lock()
	defer v.making.Unlock()
	if keys, err := v.keys(); !errors.Is(err, ErrNoKey) { // created in the meantime
		return keys, err
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	text := "# opens the secrets of the connections that recurgentd stores: without this file they are lost\n" +
		key.String() + "\n"
	if err := writeNew(v.path, text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	return []age.Identity{key}, nil
}

// writeNew creates a file that must not exist yet, and syncs it and its directory.
func writeNew(path, text string) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".secrets-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil { // unlike a rename, a link does not replace an existing file
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
