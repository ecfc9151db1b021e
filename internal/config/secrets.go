package config

import (
	"reflect"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Secrets returns all values of the file that are secret, wherever they stand.
func (f *File) Secrets() []secret.Text {
	var all []secret.Text
	var find func(v reflect.Value)
	find = func(v reflect.Value) {
		if text, ok := v.Interface().(secret.Text); ok {
			all = append(all, text)
			return
		}
		switch v.Kind() {
		case reflect.Struct:
			for _, field := range fieldsOf(v.Type()) {
				find(v.FieldByIndex(field.index))
			}
		case reflect.Map:
			for _, key := range v.MapKeys() {
				find(v.MapIndex(key))
			}
		case reflect.Slice:
			for i := range v.Len() {
				find(v.Index(i))
			}
		}
	}
	find(reflect.ValueOf(f).Elem())
	return all
}
