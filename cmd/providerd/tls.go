package main

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// retryPause is how long unusable files that do not change are left alone, so that no flood of handshakes reads them.
const retryPause = time.Second

// certificateFiles is a certificate that is read again when its files change.
type certificateFiles struct {
	certPath, keyPath string
	logger            *slog.Logger
	mutex             sync.Mutex
	certificate       *tls.Certificate
	// seen is what the files were that were read last, whether they could be used or not.
	seen [2]os.FileInfo
	// problem is why they could not be used, and retryAt when they are read again even if they look the same: a new owner,
	// or a process with fewer open files, may be all that they need.
	problem string
	retryAt time.Time
}

// newTLSConfig reads the certificate. It returns nil, for plain HTTP, where no paths are given.
func newTLSConfig(certPath, keyPath string, logger *slog.Logger) (*tls.Config, error) {
	if certPath == "" {
		return nil, nil //nolint:nilnil // It is net/http's own sign for plain HTTP.
	}
	files := &certificateFiles{certPath: certPath, keyPath: keyPath, logger: logger}
	files.seen = files.look()
	certificate, err := loadCertificate(certPath, keyPath)
	if err != nil {
		return nil, fmt.Errorf("%w: read the chain in %s and its key in %s: %w", errCertificate, certPath, keyPath, err)
	}
	files.certificate = &certificate
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: files.current}, nil
}

// current returns the certificate of the files, or the last one that could be used: the files may be replaced one after
// the other, and for a moment not fit each other.
func (f *certificateFiles) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	found := f.look()
	isRetry := f.problem != "" && !time.Now().Before(f.retryAt)
	if !isRetry && isUnchanged(found[0], f.seen[0]) && isUnchanged(found[1], f.seen[1]) {
		return f.certificate, nil
	}
	f.seen = found
	certificate, err := loadCertificate(f.certPath, f.keyPath)
	if err != nil {
		f.refuse(err.Error())
		return f.certificate, nil
	}
	f.logger.Info("certificate was read again", slog.String("path", f.certPath))
	f.certificate, f.problem = &certificate, ""
	return f.certificate, nil
}

// refuse notes why the files cannot be used, and says so unless it is what was said before.
func (f *certificateFiles) refuse(problem string) {
	if problem != f.problem {
		f.logger.Error("certificate cannot be used; the one of before stays", slog.String("error", problem))
	}
	f.problem, f.retryAt = problem, time.Now().Add(retryPause)
}

// look returns what the files are now; nil for one that is away.
func (f *certificateFiles) look() (found [2]os.FileInfo) {
	for i, path := range []string{f.certPath, f.keyPath} {
		if info, err := os.Stat(path); err == nil {
			found[i] = info
		}
	}
	return found
}

// isUnchanged tells whether a file looks as it did before. The time alone may be the same for all files of an archive.
func isUnchanged(file, before os.FileInfo) bool {
	if file == nil || before == nil {
		return file == before
	}
	return os.SameFile(file, before) && file.Size() == before.Size() && file.ModTime().Equal(before.ModTime())
}

// warnOfPlainHTTP says what to do where plain HTTP leaves this machine.
func warnOfPlainHTTP(log *serveLog, address net.Addr) {
	if tcp, ok := address.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return
	}
	log.say(slog.LevelWarn, fmt.Sprintf("tokens and secrets cross the network in clear text, because %s is not a "+
		"loopback address; give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy that speaks TLS", address))
}

// loadCertificate reads a certificate chain and its key, both in PEM.
func loadCertificate(certPath, keyPath string) (tls.Certificate, error) {
	chain, err := readSmallFile(certPath)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readSmallFile(keyPath)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(chain, key) //nolint:wrapcheck // Its callers name the files.
}

// readCertificate returns the first certificate of a file in PEM.
func readCertificate(path string) ([]byte, error) {
	text, err := readSmallFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return block.Bytes, nil
		}
	}
	return nil, fmt.Errorf("%s has no certificate in PEM", path)
}
