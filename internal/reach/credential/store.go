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
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/atomicfile"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// An Entry is what is kept of a login.
type Entry struct {
	// Resource is the server that the tokens are for, as its metadata name it.
	Resource string `json:"resource"`
	// AuthURL and TokenURL are the addresses of the authorization server, and
	// ClientID and ClientSecret who we are there. The secret and the refresh token go
	// to TokenURL alone.
	AuthURL      string      `json:"auth_url"`
	TokenURL     string      `json:"token_url"`
	ClientID     string      `json:"client_id"`
	ClientSecret secret.Text `json:"-"` // see openEntry
	// AuthStyle is how the secret is sent; see oauth2.AuthStyle.
	AuthStyle int      `json:"auth_style,omitempty"`
	Scopes    []string `json:"scopes,omitempty"`
	// Access and Refresh are the tokens. Expires is the end of Access; zero is not
	// known.
	Access  secret.Text `json:"-"`
	Refresh secret.Text `json:"-"`
	Expires time.Time   `json:"expires,omitzero"`
	// Renewing is when somebody set out to renew the tokens: Refresh may be good once.
	Renewing time.Time `json:"renewing,omitzero"`
}

// An openEntry is an Entry as it is sealed, secrets open.
type openEntry struct {
	Entry
	ClientSecret string `json:"client_secret,omitempty"`
	Access       string `json:"access"`
	Refresh      string `json:"refresh,omitempty"`
}

// An Account is whose login it is, and at which server.
type Account struct {
	// Server is the address of the server.
	Server string
	// Caller is the ID of the caller who logged in; empty for the gateway itself.
	Caller string
}

// key is what an entry stands under, and is sealed to. An address has no line break.
func (a Account) key() string {
	if a.Caller == "" {
		return a.Server
	}
	return a.Server + "\n" + a.Caller
}

// A Store keeps entries by account, in a file that only its owner can read. Each entry is sealed (AES-256-GCM) with a key that stands in a file of its
// own, so that neither file is of use alone: not a backup of one, nor one that was
// shown. Whoever can read both, can read the tokens.
//
// Several processes may use one store; each sees what others write.
type Store struct {
	// Path is the file; it and its folder are made when there is something to keep.
	// The key is beside it, at Path with ".key" after it.
	Path string

	mu   sync.Mutex
	seen fs.FileInfo // of the file as it was read
	all  sealed
}

// ErrNone means that nothing is kept for an account.
var ErrNone = errors.New("nobody has logged in")

// sealed is the file: entries by the keys of their accounts. It is not changed once
// it is made.
type sealed map[string][]byte

// Get returns the entry of an account, [ErrNone], or what is wrong with the store.
func (s *Store) Get(a Account) (Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.read()
	if err != nil {
		return Entry{}, err
	}
	return s.open(all, a)
}

func (s *Store) open(all sealed, a Account) (e Entry, err error) {
	box, ok := all[a.key()]
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
	text, err := seal.Open(nil, box[:n], box[n:], []byte(a.key()))
	if err != nil {
		return e, fmt.Errorf("credentials: %s cannot be opened with its key", s.Path)
	}
	var opened openEntry
	if err := json.Unmarshal(text, &opened); err != nil {
		return e, fmt.Errorf("credentials: %s: %w", s.Path, err)
	}
	e = opened.Entry
	e.ClientSecret, e.Access, e.Refresh = secret.New(opened.ClientSecret), secret.New(opened.Access), secret.New(opened.Refresh)
	return e, nil
}

// Accounts returns the accounts for which something is kept, in order.
func (s *Store) Accounts() (accounts []Account, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.read()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		server, caller, _ := strings.Cut(key, "\n")
		accounts = append(accounts, Account{server, caller})
	}
	return accounts, err
}

// Put keeps an entry in place of an older one.
func (s *Store) Put(a Account, e Entry) error {
	return s.change(a, func(sealed) (*Entry, error) { return &e, nil })
}

// Delete forgets an account. It is no error where there is nothing to forget.
func (s *Store) Delete(a Account) error {
	return s.change(a, func(sealed) (*Entry, error) { return nil, nil })
}

// Update changes an entry that is there; nobody else changes it meanwhile. It is
// [ErrNone] where there is none, and otherwise what change returns.
func (s *Store) Update(a Account, change func(*Entry) error) (e Entry, err error) {
	err = s.change(a, func(all sealed) (*Entry, error) {
		if e, err = s.open(all, a); err == nil {
			err = change(&e)
		}
		return &e, err
	})
	return e, err
}

// change replaces the entry of an account by what another function makes of all of
// them; nil removes it.
func (s *Store) change(a Account, change func(sealed) (*Entry, error)) error {
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	unlock, err := atomicfile.Lock(s.Path)
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	defer unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.read()
	if err != nil {
		return err
	}
	e, err := change(all)
	if err != nil {
		return err
	}
	if all = maps.Clone(all); e == nil {
		delete(all, a.key())
	} else if all[a.key()], err = s.close(a, *e); err != nil {
		return err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	s.seen = nil
	if err := atomicfile.Update(s.Path, append(text, '\n')); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	return nil
}

// close seals an entry.
func (s *Store) close(a Account, e Entry) ([]byte, error) {
	text, err := json.Marshal(openEntry{e, e.ClientSecret.Reveal(), e.Access.Reveal(), e.Refresh.Reveal()})
	if err != nil {
		return nil, err
	}
	seal, err := s.seal(true)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, seal.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return seal.Seal(nonce, nonce, text, []byte(a.key())), nil
}

// read returns what is in the file, which is read again when it has changed. mu is
// held.
func (s *Store) read() (sealed, error) {
	info, err := os.Stat(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return sealed{}, nil
	}
	if err == nil && atomicfile.Unchanged(s.seen, info) {
		return s.all, nil
	}
	text, err := readOwn(s.Path)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	all := sealed{}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("credentials: %s: %w", s.Path, err)
	}
	s.seen, s.all = info, all
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
		err = atomicfile.Replace(path, key)
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
