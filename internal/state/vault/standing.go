package vault

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// A Standing is what can be told of the keys of a store.
type Standing struct {
	// Fingerprint tells master keys apart, and nothing of them; empty where there is none.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Where is the file that the master key is in, or the setting that says what it is.
	Where string `json:"where"`
	// Generations are the keys that seal, newest first; Owners is how many have one.
	Generations []Made `json:"generations"`
	Owners      int    `json:"owners"`
	// Trouble is why the master key opens none of them; nil where it does, or there is
	// nothing to open.
	Trouble error `json:"-"`
}

// Made is a generation, and when it was made.
type Made struct {
	ID   uint32    `json:"id"`
	Made time.Time `json:"made"`
}

// Look returns what can be told of a store's keys. It makes none.
func Look(ctx context.Context, db *store.DB, config store.Config) (s Standing, err error) {
	var wrapped []byte
	if err := db.Read(ctx, func(tx *store.Tx) error {
		s, wrapped = Standing{Generations: []Made{}}, nil
		err := tx.Rows("SELECT id, made, wrapped FROM seal_keys ORDER BY made DESC, id", nil, func(scan func(...any) error) error {
			var id, made int64
			err := scan(&id, &made, &wrapped)
			s.Generations = append(s.Generations, Made{uint32(id), store.FromTime(made)})
			return err
		})
		if err != nil {
			return err
		}
		return tx.Row("SELECT count(*) FROM owner_keys", nil, &s.Owners)
	}); err != nil {
		return s, err
	}
	s.Where = whereOf(config, db)
	key, err := masterOf(config, db, true)
	if err != nil {
		if len(s.Generations) > 0 || s.Owners > 0 {
			s.Trouble = err
		}
		return s, nil
	}
	s.Fingerprint = key.fingerprint()
	if n := len(s.Generations); n > 0 {
		_, s.Trouble = key.of("seal").unwrap(name(s.Generations[n-1].ID), wrapped)
	}
	return s, nil
}

// whereOf says where the master key is.
func whereOf(config store.Config, db *store.DB) string {
	switch {
	case !config.Key.IsZero():
		return "store.key"
	case config.KeyFile != "":
		return config.KeyFile
	case !config.URL.IsZero():
		return ""
	}
	return KeyPath(db.String())
}

// fingerprint is short, and of a secret derived for it alone.
func (m master) fingerprint() string {
	secret, err := hkdf.Key(sha256.New, m[:], nil, "dragoman fingerprint", 8)
	if err != nil {
		panic("vault: " + err.Error()) // the length is one that HKDF has
	}
	return hex.EncodeToString(secret)
}
