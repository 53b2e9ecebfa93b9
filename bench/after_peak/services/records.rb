# A service that keeps records, structs of strings and lists: records.rb SOCKET.
# fill N: N records are made and kept; keep N: one in N stays, at random; clear: none stays. After keep and clear,
# garbage is collected.
require 'socket'

Record = Struct.new(:name, :note, :steps)
records = []

listener = UNIXServer.new(ARGV[0])
command = nil
until command == 'end'
  link = listener.accept
  command, count = link.gets.split
  count = count.to_i
  answer = 'done'
  case command
  when 'fill'
    records = (1..count).map do |number|
      steps = (1..number % 30).map { |step| "step #{number * step % 9973} of a record with a name" }
      Record.new("record #{number}", 'x' * (20 + number * 104_729 % 600), steps)
    end
  when 'keep'
    # Primes that turn numbers into seemingly random ones.
    records = records.select.with_index { |_, at| (at * 611_953 % 1_000_003 % count).zero? }
    GC.start
  when 'clear'
    records = []
    GC.start
  when 'end'
  else
    answer = 'unknown'
  end
  link.puts answer
  link.close
end
