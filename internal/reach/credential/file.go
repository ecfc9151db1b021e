package credential

import (
	"context"
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
	"github.com/dragoman-mcp/dragoman/internal/state/watchedfile"
)

// A File is a [Store] in a file that only its owner can read. Each entry is sealed
// (AES-256-GCM) with a key that stands in a file of its own, so that neither file is of use
// alone: not a backup of one, nor one that was shown. Whoever can read both, can read the
// tokens.
//
// Several processes may use one file; each sees what others write. It is for processes
// without a store of the gateway's, which else has what is in it (package logins).
type File struct {
	// Path is the file; it and its folder are made when there is something to keep.
	// The key is beside it, at Path with ".key" after it.
	Path string

	once sync.Once
	kept *watchedfile.File[*book]
}

// sealed is the file: entries by the keys of their accounts. It is not changed once
// it is made.
type sealed map[string][]byte

// A book is what was read: entries, and what opens them. It is not changed once it is
// made; an entry is opened when it is asked for, once.
type book struct {
	path   string
	all    sealed
	seal   cipher.AEAD // nil where there is no key, which wrong says
	wrong  error
	opened sync.Map // of Entry, by the key of the account
}

func (s *File) file() *watchedfile.File[*book] {
	s.once.Do(func() { s.kept = watchedfile.New(s.read, s.Path, s.keyPath()) })
	return s.kept
}

// Watch looks each second at what other processes wrote, until ctx ends. Meanwhile
// [File.Get] does not touch the file system, and is not held up by one that hangs;
// what this process writes is seen at once.
func (s *File) Watch(ctx context.Context) { s.file().Watch(ctx, nil) }

// Get returns the entry of an account, [ErrNone], or what is wrong with the store.
func (s *File) Get(a Account) (Entry, error) {
	b, err := s.file().Now()
	if err != nil {
		return Entry{}, err
	}
	return b.entry(a)
}

func (b *book) entry(a Account) (e Entry, err error) {
	if known, ok := b.opened.Load(a.key()); ok {
		e = known.(Entry)
		e.Scopes = slices.Clone(e.Scopes)
		return e, nil
	}
	box, ok := b.all[a.key()]
	if !ok {
		return e, ErrNone
	}
	if b.seal == nil {
		return e, b.wrong
	}
	n := b.seal.NonceSize()
	if len(box) < n {
		return e, fmt.Errorf("credentials: %s is damaged", b.path)
	}
	text, err := b.seal.Open(nil, box[:n], box[n:], []byte(a.key()))
	if err != nil {
		return e, fmt.Errorf("credentials: %s cannot be opened with its key", b.path)
	}
	if e, err = ParseEntry(text); err != nil {
		return e, fmt.Errorf("credentials: %s: %w", b.path, err)
	}
	b.opened.Store(a.key(), e)
	e.Scopes = slices.Clone(e.Scopes)
	return e, nil
}

// Accounts returns the accounts for which something is kept, in order.
func (s *File) Accounts() (accounts []Account, err error) {
	b, err := s.file().Now()
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(b.all)) {
		server, caller, _ := strings.Cut(key, "\n")
		accounts = append(accounts, Account{server, caller})
	}
	return accounts, nil
}

// Sealed returns the entries as they stand in the file: each as it is sealed, which is
// another text with each change, by its account; none where there is no file.
func (s *File) Sealed() (map[Account][]byte, error) {
	b, err := s.read()
	if err != nil {
		return nil, err
	}
	all := make(map[Account][]byte, len(b.all))
	for key, box := range b.all {
		server, caller, _ := strings.Cut(key, "\n")
		all[Account{server, caller}] = box
	}
	return all, nil
}

// Put keeps an entry in place of an older one.
func (s *File) Put(a Account, e Entry) error {
	return s.change(a, func(*book) (*Entry, error) { return &e, nil })
}

// Delete forgets an account. It is no error where there is nothing to forget.
func (s *File) Delete(a Account) error {
	return s.change(a, func(*book) (*Entry, error) { return nil, nil })
}

// Update changes an entry that is there; nobody else changes it meanwhile. It is
// [ErrNone] where there is none, and otherwise what change returns.
func (s *File) Update(a Account, change func(e *Entry, now time.Time) error) (e Entry, err error) {
	err = s.change(a, func(b *book) (*Entry, error) {
		if e, err = b.entry(a); err == nil {
			err = change(&e, time.Now())
		}
		return &e, err
	})
	return e, err
}

// change replaces the entry of an account by what another function makes of all of
// them; nil removes it. It reads what stands in the file while the lock is held.
func (s *File) change(a Account, change func(*book) (*Entry, error)) error {
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	unlock, err := atomicfile.Lock(s.Path)
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	defer unlock()
	b, err := s.read()
	if err != nil {
		return err
	}
	e, err := change(b)
	if err != nil {
		return err
	}
	after := &book{path: b.path, all: maps.Clone(b.all), seal: b.seal, wrong: b.wrong}
	if e == nil {
		delete(after.all, a.key())
	} else if err := s.put(after, a, *e); err != nil {
		return err
	}
	text, err := json.Marshal(after.all)
	if err != nil {
		return err
	}
	if err := atomicfile.Update(s.Path, append(text, '\n')); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	s.file().Wrote(after)
	return nil
}

// put seals an entry and puts it in a book. A key that is not there is made; the lock of
// the store is held.
func (s *File) put(b *book, a Account, e Entry) error {
	text := e.Open()
	if errors.Is(b.wrong, fs.ErrNotExist) {
		key := make([]byte, keySize)
		_, _ = rand.Read(key) // never fails
		if b.wrong = atomicfile.Replace(s.keyPath(), key); b.wrong == nil {
			b.seal, b.wrong = newSeal(key)
		}
	}
	if b.wrong != nil {
		return b.wrong
	}
	nonce := make([]byte, b.seal.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	b.all[a.key()] = b.seal.Seal(nonce, nonce, text, []byte(a.key()))
	return nil
}

// read reads both files.
func (s *File) read() (*book, error) {
	b := &book{path: s.Path, all: sealed{}}
	text, err := readOwn(s.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	if err == nil {
		if err := json.Unmarshal(text, &b.all); err != nil {
			return nil, fmt.Errorf("credentials: %s: %w", s.Path, err)
		}
	}
	if b.all == nil {
		b.all = sealed{} // the file says null
	}
	key, err := readOwn(s.keyPath())
	switch {
	case err != nil:
		b.wrong = fmt.Errorf("credentials: %w", err)
	case len(key) != keySize:
		b.wrong = fmt.Errorf("credentials: %s is no key", s.keyPath())
	default:
		b.seal, b.wrong = newSeal(key)
	}
	return b, nil
}

func (s *File) keyPath() string { return s.Path + ".key" }

// newSeal returns what entries are sealed with.
func newSeal(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
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
