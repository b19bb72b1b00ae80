<?php
// 切手 📮
namespace Post\Office;

use Post\Stamp;

const LIMIT = 10;

/**
 * Sends.
 */
#[Service]
final class Sender implements Sends
{
    private int $count = 0;

    public function __construct(private Stamp $stamp)
    {
    }

    /** One letter. */
    #[Logged]
    public function send(string $letter): bool
    {
        $this->check($letter);
        return self::valid($letter);
    }

    private static function valid(string $letter): bool { return strlen($letter) > 0; }
}

interface Sends
{
    public function send(string $letter): bool;
}

trait Checks
{
    public function check(string $letter): void {}
}

enum State: string
{
    case Sent = 'sent';

    public function label(): string { return ucfirst($this->value); }
}

function post(string $letter): void
{
    $sender = new Sender(new Stamp());
}
