package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/state/atomicfile"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Why there is no master key.
var (
	// ErrNoKey: nobody says what it is.
	ErrNoKey = errors.New("the store has no master key: set store.key_file to a file, or store.key to a variable, with 32 random bytes in base64, the same for all gateways that share the store (openssl rand -base64 32)")
	// ErrOtherKey: it is not the one that the store's keys are wrapped with.
	ErrOtherKey = errors.New("the master key is not the one that the store was made with: put that one back")
)

// keySize is that of AES-256, in bytes.
const keySize = 32

// A master wraps keys.
type master [keySize]byte

// master returns the master key that a configuration names. For a file that names
// none it is beside it; where that is not there, and nothing is wrapped yet, it is made.
func masterOf(config store.Config, db *store.DB, wrapped bool) (master, error) {
	switch {
	case !config.Key.IsZero():
		return parse(config.Key.Reveal(), "store.key")
	case config.KeyFile != "":
		return read(config.KeyFile)
	case !config.URL.IsZero():
		return master{}, ErrNoKey
	case config.Path == store.Memory:
		return newMaster(), nil
	}
	path := KeyPath(db.String())
	m, err := read(path)
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return m, err
	case wrapped:
		return m, fmt.Errorf("%w: %s is missing", ErrOtherKey, path)
	}
	return create(path)
}

// KeyPath is where the master key of a store in a file is, where nobody says.
func KeyPath(file string) string { return file + ".key" }

func newMaster() (m master) {
	_, _ = rand.Read(m[:]) // it never fails
	return m
}

// create makes the file of a key, unless another process has.
func create(path string) (master, error) {
	unlock, err := atomicfile.Lock(path)
	if err != nil {
		return master{}, err
	}
	defer unlock()
	if m, err := read(path); !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	m := newMaster()
	return m, atomicfile.Place(path, []byte(base64.StdEncoding.EncodeToString(m[:])+"\n"))
}

func read(path string) (master, error) {
	info, err := os.Stat(path)
	if err != nil {
		return master{}, fmt.Errorf("the master key: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		return master{}, fmt.Errorf("the master key: everybody may read %s; chmod 600 it", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return master{}, fmt.Errorf("the master key: %w", err)
	}
	return parse(string(text), path)
}

// parse reads a key. What it is like is not told.
func parse(text, where string) (m master, err error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != keySize {
		return m, fmt.Errorf("the master key: %s has to hold 32 bytes in base64 (openssl rand -base64 32)", where)
	}
	return master(key), nil
}

// A wrapper wraps keys of a kind with the master key. It is safe for concurrent use.
type wrapper struct{ box cipher.AEAD }

// of returns what wraps keys of a kind.
func (m master) of(kind string) wrapper {
	secret, err := hkdf.Key(sha256.New, m[:], nil, "dragoman wrap "+kind, keySize)
	if err != nil {
		panic(fmt.Sprintf("vault: %v", err)) // the length is one that HKDF has
	}
	return wrapper{gcm(secret)}
}

func gcm(secret []byte) cipher.AEAD {
	block, err := aes.NewCipher(secret)
	if err != nil {
		panic(fmt.Sprintf("vault: %v", err)) // the size of the key is right
	}
	box, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(fmt.Sprintf("vault: %v", err))
	}
	return box
}

// wrap closes a key under its name.
func (w wrapper) wrap(name string, key []byte) []byte {
	return w.box.Seal(nil, nil, key, seal.Bind([]byte(name)))
}

func (w wrapper) unwrap(name string, wrapped []byte) ([keySize]byte, error) {
	key, err := w.box.Open(nil, nil, wrapped, seal.Bind([]byte(name)))
	if err != nil || len(key) != keySize {
		return [keySize]byte{}, ErrOtherKey
	}
	return [keySize]byte(key), nil
}
