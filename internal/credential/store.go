package credential

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wholefile"
)

// An Entry is what is kept of a login.
type Entry struct {
	// Resource is the server that the tokens are for, as its metadata name it.
	Resource string `json:"resource"`
	// AuthURL and TokenURL are the addresses of the authorization server, and
	// ClientID and ClientSecret who we are there. The secret and the refresh token go
	// to TokenURL alone.
	AuthURL      string `json:"auth_url"`
	TokenURL     string `json:"token_url"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret,omitempty"`
	// AuthStyle is how the secret is sent; see oauth2.AuthStyle.
	AuthStyle int      `json:"auth_style,omitempty"`
	Scopes    []string `json:"scopes,omitempty"`
	// Access and Refresh are the tokens. Expires is the end of Access; zero is not
	// known.
	Access  string    `json:"access"`
	Refresh string    `json:"refresh,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
}

// A Store keeps entries by the address of the server, in a file that only its owner
// can read. Each entry is sealed (AES-256-GCM) with a key that stands in a file of its
// own, so that neither file is of use alone: not a backup of one, nor one that was
// shown. Whoever can read both, can read the tokens.
//
// Several processes may use one store; each sees what others write.
type Store struct {
	// Path is the file; it and its folder are made when there is something to keep.
	// The key is beside it, at Path with ".key" after it.
	Path string
}

// ErrNone means that nothing is kept for a server.
var ErrNone = errors.New("nobody has logged in")

// sealed is the file: entries by server.
type sealed map[string][]byte

// Get returns the entry of a server, [ErrNone], or what is wrong with the store.
func (s *Store) Get(server string) (e Entry, err error) {
	all, err := s.read()
	if err != nil {
		return e, err
	}
	box, ok := all[server]
	if !ok {
		return e, ErrNone
	}
	seal, err := s.seal(false)
	if err != nil {
		return e, err
	}
	n := seal.NonceSize()
	if len(box) < n {
		return e, fmt.Errorf("credentials: %s is damaged", s.Path)
	}
	text, err := seal.Open(nil, box[:n], box[n:], []byte(server))
	if err != nil {
		return e, fmt.Errorf("credentials: %s cannot be opened with its key", s.Path)
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("credentials: %s: %w", s.Path, err)
	}
	return e, nil
}

// Servers returns the addresses of the servers for which something is kept.
func (s *Store) Servers() ([]string, error) {
	all, err := s.read()
	return slices.Sorted(maps.Keys(all)), err
}

// Put keeps an entry in place of an older one.
func (s *Store) Put(server string, e Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return s.change(func(all sealed) error {
		seal, err := s.seal(true)
		if err != nil {
			return err
		}
		nonce := make([]byte, seal.NonceSize())
		_, _ = rand.Read(nonce) // never fails
		all[server] = seal.Seal(nonce, nonce, text, []byte(server))
		return nil
	})
}

// Delete forgets a server. It is no error where there is nothing to forget.
func (s *Store) Delete(server string) error {
	return s.change(func(all sealed) error { delete(all, server); return nil })
}

func (s *Store) change(change func(sealed) error) error {
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	unlock, err := wholefile.Lock(s.Path)
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	defer unlock()
	all, err := s.read()
	if err != nil {
		return err
	}
	if err := change(all); err != nil {
		return err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := wholefile.Replace(s.Path, append(text, '\n')); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	return nil
}

func (s *Store) read() (sealed, error) {
	text, err := readOwn(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return sealed{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	all := sealed{}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("credentials: %s: %w", s.Path, err)
	}
	return all, nil
}

// readOwn reads a file that nobody else may read.
func readOwn(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others on this machine may read or write %s; run: chmod 600 %[1]s", path)
	}
	return os.ReadFile(path)
}

// keySize is that of AES-256, in bytes.
const keySize = 32

// seal returns what entries are sealed with. A key that is not there is made where
// wanted; the lock of the store is held then.
func (s *Store) seal(missing bool) (cipher.AEAD, error) {
	path := s.Path + ".key"
	key, err := readOwn(path)
	if errors.Is(err, fs.ErrNotExist) && missing {
		key = make([]byte, keySize)
		_, _ = rand.Read(key) // never fails
		err = wholefile.Replace(path, key)
	}
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	if len(key) != keySize {
		return nil, fmt.Errorf("credentials: %s is no key", path)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
