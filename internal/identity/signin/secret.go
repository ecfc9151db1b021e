package signin

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/state/atomicfile"
)

// Operator is who the secret signs in: the person who started a gateway that asks nobody
// for a key. It may do everything, and is not [caller.Local], which programs on this
// machine are: so it may answer what they ask, and they may not.
var Operator = caller.Caller{ID: "operator", Name: "operator", Grants: []string{"*"}}

// tries are how many wrong secrets and keys are looked at: five, and one more in two
// seconds. Nobody guesses 256 bits; but who tries is slow, and is seen.
const (
	tryBurst = 5
	tryEvery = 2 * time.Second
)

// ErrSlower: too many wrong ones were tried within the last seconds.
var ErrSlower = errors.New("too many wrong attempts: try again in a few seconds")

// A Secret is what signs in the operator of a gateway that asks nobody for a key. Make it
// with [NewSecret]; it is safe for concurrent use. A nil Secret is nobody's.
type Secret struct {
	path string
	key  Key

	mu  sync.Mutex
	sum [sha256.Size]byte
}

// A Key is what stands in the file of a secret.
type Key struct {
	// Console is the address of the console.
	Console string `json:"console"`
	// Secret signs in once, and shows the routes of operators who asks.
	Secret string `json:"secret"`
}

// Address returns where a browser signs in with the key. The secret is behind a #, which
// no browser sends and no log has.
func (k Key) Address() string { return k.Console + "sign-in#" + k.Secret }

// PathFor returns the file of the secret of the gateway that listens on an address, in the
// folder for state.
func PathFor(folder, listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		host, port = listen, ""
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		host = "loopback"
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(host+"-"+port))
	return filepath.Join(folder, "console-"+name+".json")
}

// NewSecret makes a secret, which is in no file yet.
func NewSecret() *Secret {
	s := &Secret{}
	_ = s.renew() // there is no file that could fail
	return s
}

// Publish writes the secret to the file at path, for this user alone, and its successors
// after it. console is the address of the console.
func (s *Secret) Publish(path, console string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.path, s.key.Console = path, console
	return s.write()
}

// renew puts another secret in the place of the one there was. mu is held, or nobody
// else has s.
func (s *Secret) renew() error {
	s.key.Secret = random()
	s.sum = sha256.Sum256([]byte(s.key.Secret))
	return s.write()
}

func (s *Secret) write() error {
	if s.path == "" {
		return nil
	}
	text, err := json.Marshal(s.key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	return atomicfile.Replace(s.path, append(text, '\n'))
}

// Key returns the secret that is good now, to be printed for whoever started the gateway.
func (s *Secret) Key() Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// Is reports whether a text is the secret.
func (s *Secret) Is(text string) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.is(text)
}

func (s *Secret) is(text string) bool {
	sum := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(sum[:], s.sum[:]) == 1
}

// Spend reports whether a text is the secret, which then is another one: it signs in once.
// The error says that the new one could not be written down; it is good all the same.
func (s *Secret) Spend(text string) (ok bool, err error) {
	if s == nil {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.is(text) {
		return false, nil
	}
	return true, s.renew()
}

// Close removes the file, where it is still the one of this secret.
func (s *Secret) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path == "" {
		return
	}
	if there, err := ReadKey(s.path); err == nil && there.Secret == s.key.Secret {
		_ = os.Remove(s.path)
	}
}

// ReadKey reads the file of a secret.
func ReadKey(path string) (k Key, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, fmt.Errorf("no gateway that asks nobody for a key runs there (%w)", err)
	}
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	return k, err
}

// Tries slow down whoever tries wrong secrets and keys. The zero value is ready.
type Tries struct {
	once  sync.Once
	wrong *rate.Limiter
}

// Wrong notes that one was wrong, and reports ErrSlower where too many were.
func (t *Tries) Wrong() error {
	if t.limiter().Allow() {
		return nil
	}
	return ErrSlower
}

// Closed reports whether nothing that could be guessed is looked at now.
func (t *Tries) Closed() bool { return t.limiter().Tokens() < 1 }

func (t *Tries) limiter() *rate.Limiter {
	t.once.Do(func() { t.wrong = rate.NewLimiter(rate.Every(tryEvery), tryBurst) })
	return t.wrong
}
