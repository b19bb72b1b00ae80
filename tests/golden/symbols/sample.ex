# 手紙 ✉️
defmodule Mail.Box do
  @moduledoc "A box."
  alias Mail.Letter

  @limit 10

  defstruct [:letters]

  @doc """
  Adds one.
  """
  @spec add(t, Letter.t()) :: t
  def add(box, letter) when is_list(box) do
    Letter.check(letter)
    store(box, letter)
  end

  def add(nil, letter), do: add([], letter)

  defp store(box, letter), do: [letter | box]

  def empty, do: []

  defmacro letter(name) do
    name
  end

  defmodule Inner do
    def go(x), do: x
  end
end

defprotocol Sends do
  def send(what)
end

defimpl Sends, for: Mail.Box do
  def send(box), do: box
end
